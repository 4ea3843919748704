//! `postrider subscriptions`: what there is, and what is done to it.

mod create;
mod lanes;
mod list;

use clap::{Args, Subcommand};
use postrider::Subscription;

use super::unknown;
use crate::Failure;
use crate::config::Config;
use crate::confirm::Consent;
use crate::database::Controls;
use crate::output;

/// What is done to subscriptions.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// Show what each subscription wants and how it is set
    List(list::Arguments),
    /// Make a subscription: by flags, or as the settings have it
    Create(create::Arguments),
    /// Let nobody read a subscription until it is resumed; what is in flight is finished
    Pause(Named),
    /// Let a paused subscription go on
    Resume(Named),
    /// Change the number of lanes while relays run; nothing is lost, repeated or reordered
    Lanes(lanes::Arguments),
    /// Remove a subscription with its positions and its dead events; the log stays
    Remove(Remove),
}

/// A subscription by name.
#[derive(Args)]
pub(crate) struct Named {
    /// The subscription
    name: String,
    #[command(flatten)]
    consent: Consent,
}

/// The flags of `remove`.
#[derive(Args)]
pub(crate) struct Remove {
    /// The subscription
    name: String,
    /// Also while a relay holds a lane of it; that relay can't settle any more
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    consent: Consent,
}

/// Does it.
pub(crate) async fn run(config: &Config, action: Action) -> Result<bool, Failure> {
    let controls = Controls::open(&config.store).await?;
    match action {
        Action::List(arguments) => list::run(&controls, &arguments).await,
        Action::Create(arguments) => create::run(&controls, config, arguments).await,
        Action::Pause(named) => pause(&controls, &named).await,
        Action::Resume(named) => resume(&controls, &named).await,
        Action::Lanes(arguments) => lanes::run(&controls, &arguments).await,
        Action::Remove(arguments) => remove(&controls, &arguments).await,
    }
}

async fn pause(controls: &Controls, Named { name, consent }: &Named) -> Result<bool, Failure> {
    consent.check()?;
    let info = unknown::subscription(&*controls.desk, name).await?;
    if info.paused {
        output::line(format!("{name} is paused already"))?;
        return Ok(true);
    }
    if !consent.given(&format!("Pause {name}? Nothing of it is delivered until it is resumed."))? {
        return Ok(false);
    }
    controls.desk.pause(name, true).await?;
    consent.audit(&*controls.desk, "pause", Some(name), None).await?;
    output::line(format!("{name} is paused; what is in flight is finished"))?;
    Ok(true)
}

async fn resume(controls: &Controls, Named { name, consent }: &Named) -> Result<bool, Failure> {
    consent.check()?;
    let info = unknown::subscription(&*controls.desk, name).await?;
    if !info.paused {
        output::line(format!("{name} is not paused"))?;
        return Ok(true);
    }
    controls.desk.pause(name, false).await?;
    consent.audit(&*controls.desk, "resume", Some(name), None).await?;
    output::line(format!("{name} goes on"))?;
    Ok(true)
}

async fn remove(controls: &Controls, arguments: &Remove) -> Result<bool, Failure> {
    let Remove { name, force, consent } = arguments;
    consent.check()?;
    unknown::subscription(&*controls.desk, name).await?;
    let figures = controls.store.figures_up_to(name, 1000).await?;
    let dead: u64 = figures.iter().map(|figures| figures.dead).sum();
    let retrying: u64 = figures.iter().map(|figures| figures.retrying).sum();
    let question = format!(
        "Remove {name} with its positions, {} and {}? If it is made again, it starts anew.",
        output::count(dead, "dead event"),
        output::count(retrying, "retrying event"),
    );
    if !consent.given(&question)? {
        return Ok(false);
    }
    controls.desk.remove(name, *force).await?;
    let what = format!("remove ({dead} dead, {retrying} retrying)");
    consent.audit(&*controls.desk, &what, Some(name), None).await?;
    output::line(format!("{name} is removed"))?;
    Ok(true)
}

/// A subscription's filter, in a few words.
fn wanted(subscription: &Subscription) -> (String, String) {
    let words = |patterns: &[postrider::Pattern]| {
        let all: Vec<&str> = patterns.iter().map(postrider::Pattern::as_str).collect();
        if all.is_empty() { "*".to_owned() } else { all.join(" ") }
    };
    (words(&subscription.filter.streams), words(&subscription.filter.types))
}
