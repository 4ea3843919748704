//! `postrider dead requeue` and `dead discard`: counted and confirmed first, in order, and written down.

use std::collections::{BTreeMap, HashSet};

use clap::Args;
use postrider::Uuid;
use postrider::store::ResolveDead;
use serde::Serialize;

use super::{Dead, Wanted, each_dead};
use crate::Failure;
use crate::config::Problem;
use crate::confirm::Consent;
use crate::database::SharedStore;
use crate::output::{self, Column, Table};

/// So many at once: one short transaction each.
const CHUNK: usize = 1_000;
/// Up to so many events are written down one by one; more of them together.
const ONE_BY_ONE: usize = 100;

/// The flags of `requeue` and `discard`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Ids of the events
    #[arg(value_name = "UUID")]
    ids: Vec<Uuid>,
    #[command(flatten)]
    wanted: Wanted,
    /// All dead events
    #[arg(long)]
    all: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    consent: Consent,
}

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Requeue,
    Discard,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Self::Requeue => "requeue",
            Self::Discard => "discard",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Requeue => "requeued",
            Self::Discard => "discarded",
        }
    }
}

#[derive(Serialize)]
struct Answer {
    dry_run: bool,
    changed: u64,
    subscriptions: BTreeMap<String, u64>,
    events: Vec<String>,
}

impl Arguments {
    /// Whether it is said well enough what is meant; asked before anything is looked up.
    pub(crate) fn check(&self, discards: bool) -> Result<(), Problem> {
        if self.ids.is_empty() && !self.wanted.is_set() && !self.all {
            let what = "no events are selected; pass event ids, a filter, or --all";
            return Err(Problem::new(what));
        }
        if discards && self.consent.why.is_none() && !self.dry_run {
            return Err(Problem::new("discard needs a reason; pass --why REASON"));
        }
        self.consent.check()
    }

    /// Which ones were meant, in a few words, for the audit.
    fn words(&self) -> String {
        if self.ids.is_empty() { self.wanted.words() } else { "by id".to_owned() }
    }
}

/// Finds them, asks, does it, and writes it down.
pub(crate) async fn run(log: &SharedStore, arguments: &Arguments, verb: Verb) -> Result<bool, Failure> {
    arguments.wanted.check(log).await?;
    let chosen = choose(log, arguments).await?;
    let mut by_subscription: BTreeMap<String, Vec<Dead>> = BTreeMap::new();
    for dead in chosen {
        by_subscription.entry(dead.subscription.clone()).or_default().push(dead);
    }
    let total: u64 = by_subscription.values().map(|dead| dead.len() as u64).sum();
    if total == 0 {
        return nothing(arguments);
    }
    let parts: Vec<String> = by_subscription
        .iter()
        .map(|(name, dead)| format!("{} of {name}", output::number(dead.len() as u64)))
        .collect();
    let what = format!("{} ({})", output::count(total, "dead event"), parts.join(", "));
    if arguments.dry_run {
        if arguments.json {
            return answer(arguments, &by_subscription, 0);
        }
        table(&by_subscription).show()?;
        output::line(format!("would {} {what}; nothing was changed", verb.word()))?;
        return Ok(true);
    }
    let question = match verb {
        Verb::Requeue => format!("Requeue {what}?"),
        Verb::Discard => {
            format!("Discard {what}? Only a replay can deliver them again.")
        }
    };
    if !arguments.consent.given(&question)? {
        return Ok(false);
    }
    let mut changed = 0;
    for (subscription, dead) in &by_subscription {
        changed += resolve_dead(log, arguments, verb, subscription, dead).await?;
    }
    if arguments.json {
        return answer(arguments, &by_subscription, changed);
    }
    output::line(format!("{} {}", verb.done(), output::count(changed, "dead event")))?;
    if changed < total {
        let rest = output::number(total - changed);
        output::note(format!("{rest} were requeued or discarded by someone else in the meantime"));
    }
    Ok(true)
}

/// The dead that are meant, in the order of the log.
async fn choose(log: &SharedStore, arguments: &Arguments) -> Result<Vec<Dead>, Failure> {
    let named: HashSet<Uuid> = arguments.ids.iter().copied().collect();
    let (mut chosen, mut seen) = (Vec::new(), HashSet::new());
    each_dead(log, &arguments.wanted, |delivery| {
        let event_id = delivery.event.event_id;
        if named.is_empty() || named.contains(&event_id) {
            seen.insert(event_id);
            chosen.push(Dead {
                event_id,
                number: delivery.event.id,
                event_type: delivery.event.event_type.to_string(),
                subscription: delivery.subscription,
            });
        }
        true
    })
    .await?;
    let missing: Vec<&Uuid> = arguments.ids.iter().filter(|id| !seen.contains(id)).collect();
    match missing.as_slice() {
        [] => Ok(chosen),
        [one] => {
            Err(format!("no dead event matches {one}; `postrider events show {one}` shows its state").into())
        }
        [first, ..] => Err(format!(
            "{} of these events are not dead, for example {first}; nothing was changed",
            missing.len()
        )
        .into()),
    }
}

fn nothing(arguments: &Arguments) -> Result<bool, Failure> {
    if arguments.json {
        return answer(arguments, &BTreeMap::new(), 0);
    }
    output::line("no dead events match; nothing was changed")?;
    Ok(true)
}

async fn resolve_dead(
    log: &SharedStore,
    arguments: &Arguments,
    verb: Verb,
    subscription: &str,
    dead: &[Dead],
) -> Result<u64, Failure> {
    let (mut changed, mut reached, mut failure) = (0, 0, None);
    for chunk in dead.chunks(CHUNK) {
        let (subscription, events) =
            (subscription.to_owned(), chunk.iter().map(|dead| dead.event_id).collect());
        let action = match verb {
            Verb::Requeue => ResolveDead::Requeue { subscription, events },
            Verb::Discard => ResolveDead::Discard { subscription, events },
        };
        match log.resolve_dead(&action).await {
            Ok(many) => changed += many,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        reached += chunk.len();
    }
    // What was done is written down, also where the rest failed.
    if changed > 0 {
        audit(log, arguments, verb, subscription, &dead[..reached], changed).await?;
    }
    match failure {
        None => Ok(changed),
        Some(error) if changed == 0 => Err(error.into()),
        Some(error) => {
            let done = output::count(changed, "dead event");
            Err(format!("{done} of {subscription} were {}, then an error stopped it: {error}", verb.done())
                .into())
        }
    }
}

/// Writes down that so many of these were changed.
async fn audit(
    log: &SharedStore,
    arguments: &Arguments,
    verb: Verb,
    subscription: &str,
    dead: &[Dead],
    changed: u64,
) -> Result<(), Failure> {
    let (consent, log) = (&arguments.consent, log.as_ref());
    if dead.len() <= ONE_BY_ONE {
        let many = dead.len() as u64;
        let what = match changed < many {
            true => format!("{} ({changed} of {many} were still dead)", verb.word()),
            false => verb.word().to_owned(),
        };
        for each in dead {
            consent.audit(log, &what, Some(subscription), Some(each.event_id)).await?;
        }
    } else if let (Some(first), Some(last)) = (dead.first(), dead.last()) {
        let what = format!(
            "{} {changed} dead events, numbers {} to {} ({})",
            verb.word(),
            first.number,
            last.number,
            arguments.words().chars().take(100).collect::<String>()
        );
        consent.audit(log, &what, Some(subscription), None).await?;
    }
    Ok(())
}

fn answer(
    arguments: &Arguments,
    by_subscription: &BTreeMap<String, Vec<Dead>>,
    changed: u64,
) -> Result<bool, Failure> {
    let events = by_subscription.values().flatten().map(|dead| dead.event_id.to_string());
    output::json(&Answer {
        dry_run: arguments.dry_run,
        changed,
        subscriptions: by_subscription.iter().map(|(name, dead)| (name.clone(), dead.len() as u64)).collect(),
        events: events.collect(),
    })?;
    Ok(true)
}

fn table(by_subscription: &BTreeMap<String, Vec<Dead>>) -> Table {
    let mut table = Table::new([Column::whole("event"), Column::text("subscription"), Column::text("type")]);
    for dead in by_subscription.values().flatten() {
        table.row([dead.event_id.to_string(), dead.subscription.clone(), dead.event_type.clone()]);
    }
    table
}
