//! `postrider subscriptions`: what there is, and what is done to it.

mod create;
mod lanes;
mod list;

use clap::{Args, Subcommand};
use postrider::store::Subscription;
use serde::Serialize;

use super::unknown;
use crate::Failure;
use crate::config::Config;
use crate::confirm::Consent;
use crate::database::{self, SharedStore};
use crate::output;

/// What is done to subscriptions.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// List the subscriptions with their filters and settings
    List(list::Arguments),
    /// Create a subscription from flags or from the settings
    Create(create::Arguments),
    /// Stop deliveries of a subscription until it is resumed; those in flight finish
    Pause(Named),
    /// Resume a paused subscription
    Resume(Named),
    /// Change the number of lanes while relays run; no event is lost, repeated or reordered
    Lanes(lanes::Arguments),
    /// Remove a subscription with its positions and dead events; the log stays
    Remove(Remove),
}

/// A subscription by name.
#[derive(Args)]
pub(crate) struct Named {
    /// Name of the subscription
    name: String,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    consent: Consent,
}

/// What was done to a subscription.
#[derive(Serialize)]
struct Answer {
    subscription: String,
    changed: bool,
    /// A sentence without its first word, the subscription's name.
    message: String,
}

impl Answer {
    fn of(subscription: &str, changed: bool, message: String) -> Self {
        Self { subscription: subscription.to_owned(), changed, message }
    }

    fn line(&self) -> Result<(), Failure> {
        output::line(output::plain(&format!("{} {}", self.subscription, self.message)))
    }
}

/// Says what was done: in a sentence, or as an object.
fn tell(json: bool, subscription: &str, changed: bool, message: &str) -> Result<bool, Failure> {
    let answer = Answer::of(subscription, changed, message.to_owned());
    if json {
        output::json(&answer)?;
    } else {
        answer.line()?;
    }
    Ok(true)
}

/// The flags of `remove`.
#[derive(Args)]
pub(crate) struct Remove {
    /// Name of the subscription
    name: String,
    /// Remove it even while a relay runs it; that relay can no longer settle its events
    #[arg(long)]
    force: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    consent: Consent,
}

/// Does it.
pub(crate) async fn run(config: &Config, action: Action) -> Result<bool, Failure> {
    let log = database::open(&config.store).await?;
    match action {
        Action::List(arguments) => list::run(&log, &arguments).await,
        Action::Create(arguments) => create::run(&log, config, arguments).await,
        Action::Pause(named) => pause(&log, &named).await,
        Action::Resume(named) => resume(&log, &named).await,
        Action::Lanes(arguments) => lanes::run(&log, &arguments).await,
        Action::Remove(arguments) => remove(&log, &arguments).await,
    }
}

async fn pause(log: &SharedStore, Named { name, json, consent }: &Named) -> Result<bool, Failure> {
    consent.check()?;
    let info = unknown::subscription(log.as_ref(), name).await?;
    if info.paused {
        return tell(*json, name, false, "is already paused");
    }
    if !consent.given(&format!("Pause {name}? None of its events are delivered until you resume it."))? {
        return Ok(false);
    }
    log.pause(name, Some(&consent.pause())).await?;
    consent.audit(log.as_ref(), "pause", Some(name), None).await?;
    tell(*json, name, true, "is paused; deliveries in flight finish")
}

async fn resume(log: &SharedStore, Named { name, json, consent }: &Named) -> Result<bool, Failure> {
    consent.check()?;
    let info = unknown::subscription(log.as_ref(), name).await?;
    if !info.paused {
        return tell(*json, name, false, "is not paused");
    }
    if !consent.not_refused(&format!("Resume {name}? Waiting events are delivered at once."))? {
        return Ok(false);
    }
    log.pause(name, None).await?;
    consent.audit(log.as_ref(), "resume", Some(name), None).await?;
    tell(*json, name, true, "is resumed")
}

async fn remove(log: &SharedStore, arguments: &Remove) -> Result<bool, Failure> {
    let Remove { name, force, json, consent } = arguments;
    consent.check()?;
    unknown::subscription(log.as_ref(), name).await?;
    let figures = log.figures_up_to(name, 1000).await?;
    let dead: u64 = figures.iter().map(|figures| figures.dead).sum();
    let retrying: u64 = figures.iter().map(|figures| figures.retrying).sum();
    let question = format!(
        "Remove {name} with its positions, {} and {}? If you create it again, it starts over.",
        output::count(dead, "dead event"),
        output::count(retrying, "retrying event"),
    );
    if !consent.given(&question)? {
        return Ok(false);
    }
    log.remove(name, *force).await?;
    let what = format!("remove ({dead} dead, {retrying} retrying)");
    consent.audit(log.as_ref(), &what, Some(name), None).await?;
    tell(*json, name, true, "is removed")
}

/// A subscription's filter, in a few words.
fn wanted(subscription: &Subscription) -> (String, String) {
    let words = |patterns: &[postrider::store::Pattern]| {
        let all: Vec<&str> = patterns.iter().map(postrider::store::Pattern::as_str).collect();
        if all.is_empty() { "*".to_owned() } else { all.join(" ") }
    };
    (words(&subscription.filter.streams), words(&subscription.filter.types))
}
