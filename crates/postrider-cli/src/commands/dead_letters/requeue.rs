//! `postrider dead-letters requeue`: counted and confirmed first; what was put back once is not put back again.

use std::collections::BTreeSet;

use clap::Args;
use postrider::kafka::DeadLetters;
use serde::Serialize;

use super::{Place, failed};
use crate::Failure;
use crate::config::Config;
use crate::confirm::Consent;
use crate::output;

/// The flags of `dead-letters requeue`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Consumer group that failed on the records and receives them again
    #[arg(long, value_name = "NAME")]
    group: String,
    /// Maximum number of letters, the oldest of each partition first (default: all)
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Don't ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    dry_run: bool,
    topic: &'a str,
    group: &'a str,
    /// How many there were to requeue.
    found: usize,
    requeued: usize,
}

impl Arguments {
    fn answer(&self, found: usize, requeued: usize) -> Result<bool, Failure> {
        let (topic, group) = (self.place.topic.as_str(), self.group.as_str());
        output::json(&Answer { dry_run: self.dry_run, topic, group, found, requeued })?;
        Ok(true)
    }
}

/// Counts them, asks, and puts them back.
pub(crate) async fn run(config: &Config, arguments: &Arguments) -> Result<bool, Failure> {
    let (place, group) = (&arguments.place, arguments.group.as_str());
    let letters = place.letters(config, group)?;
    let most = arguments.limit.map_or(usize::MAX, |limit| limit as usize);
    let found = letters.list(&place.topic, most).await.map_err(failed)?.len();
    if found == 0 {
        known(&letters, place, group).await?;
        if arguments.json {
            return arguments.answer(0, 0);
        }
        output::line(format!("all dead letters of {group} were requeued already; nothing was changed"))?;
        return Ok(true);
    }
    let what = format!("{} of {group}", output::count(found as u64, "dead letter"));
    if arguments.dry_run {
        if arguments.json {
            return arguments.answer(found, 0);
        }
        output::line(format!("would put {what} back into {}; nothing was changed", place.topic))?;
        return Ok(true);
    }
    let question = format!("Put {what} back into {}?", place.topic);
    if !(Consent { yes: arguments.yes, ..Consent::default() }).given(&question)? {
        return Ok(false);
    }
    let requeued = letters.requeue_some(&place.topic, most).await.map_err(failed)?;
    if arguments.json {
        return arguments.answer(found, requeued);
    }
    let count = output::count(requeued as u64, "dead letter");
    output::line(format!("put {count} back into {} for {group} alone", place.topic))?;
    Ok(true)
}

/// Refuses a group that never gave anything up there: its name may be wrong.
async fn known(letters: &DeadLetters, place: &Place, group: &str) -> Result<(), Failure> {
    let all = letters.list_all(&place.topic, usize::MAX, |_| true).await.map_err(failed)?;
    let groups: BTreeSet<String> = all.into_iter().map(|letter| letter.group).collect();
    if groups.contains(group) {
        return Ok(());
    }
    let topic = place.letters_topic();
    Err(match groups.into_iter().collect::<Vec<_>>().join(", ").as_str() {
        "" => format!("there are no dead letters of {} in {topic}", place.topic),
        groups => format!("group {group} has no dead letters in {topic}; these groups have: {groups}"),
    }
    .into())
}
