//! `postrider dead`: what was given up, and what is done about it.

pub(crate) mod hold;
mod list;
mod replace;
mod resolve;

use clap::{Args, Subcommand};
use postrider::Uuid;
use postrider::store::{OpenDelivery, OpenDeliveryQuery, Pattern};

use super::times::Span;
use super::unknown;
use crate::Failure;
use crate::config::{Config, Problem};
use crate::database::{self, SharedStore};

/// What is done with the dead.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// List dead events, oldest first
    List(list::Arguments),
    /// Show a dead event and why it died
    Show(list::Show),
    /// Retry dead events: resets their attempts, and delivers each before later events of its key
    Requeue(resolve::Arguments),
    /// Discard dead events: unblocks their keys and lets retention remove them; only a replay delivers them again
    Discard(resolve::Arguments),
    /// Replace a dead event whose payload is wrong: records a corrected event for every subscription, and discards the dead one
    Replace(replace::Arguments),
}

/// Which dead events are meant.
#[derive(Args, Debug, Clone, Default)]
struct Wanted {
    /// Only this subscription
    #[arg(long, value_name = "NAME")]
    subscription: Option<String>,
    /// Only events of this type; * matches any characters
    #[arg(long = "type", value_name = "PATTERN")]
    event_type: Option<String>,
    /// Only events whose last failure has this code
    #[arg(long)]
    code: Option<String>,
    #[command(flatten)]
    span: Span,
}

impl Wanted {
    /// Whether it restricts anything.
    fn is_set(&self) -> bool {
        self.subscription.is_some() || self.event_type.is_some() || self.code.is_some() || self.span.is_set()
    }

    async fn check(&self, log: &SharedStore) -> Result<(), Failure> {
        let texts = [&self.subscription, &self.event_type, &self.code];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            return Err(Problem::new("a filter must not contain a NUL character").into());
        }
        unknown::check(log.as_ref(), self.subscription.as_deref()).await
    }

    fn query(&self, limit: u32) -> OpenDeliveryQuery {
        OpenDeliveryQuery {
            retrying: false,
            subscription: self.subscription.clone(),
            event_type: self.event_type.clone().map(Pattern::new),
            error_code: self.code.clone(),
            from: self.span.from(),
            until: self.span.until(),
            after: None,
            bare: false,
            limit,
        }
    }

    /// In a few words, for the audit.
    fn words(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.event_type.as_ref().map(|text| format!("type {text}")));
        words.extend(self.code.as_ref().map(|text| format!("code {text}")));
        words.extend(self.span.is_set().then(|| "by time".to_owned()));
        if words.is_empty() { "all".to_owned() } else { words.join(", ") }
    }
}

const PAGE: u32 = 500;

/// Goes through the dead, page by page; `take` says whether to go on.
async fn each_dead(
    log: &SharedStore,
    wanted: &Wanted,
    mut take: impl FnMut(OpenDelivery) -> bool,
) -> Result<(), Failure> {
    let mut query = wanted.query(PAGE);
    loop {
        let page = log.open_deliveries(&query).await?;
        let Some(last) = page.last() else { return Ok(()) };
        query.after = Some((last.event.id, last.subscription.clone()));
        let more = page.len() == PAGE as usize;
        for delivery in page {
            if !take(delivery) {
                return Ok(());
            }
        }
        if !more {
            return Ok(());
        }
    }
}

/// Does it.
pub(crate) async fn run(config: &Config, action: Action) -> Result<bool, Failure> {
    if let Action::Requeue(arguments) | Action::Discard(arguments) = &action {
        arguments.check(matches!(action, Action::Discard(_)))?;
    }
    if let Action::Replace(arguments) = &action {
        arguments.check()?;
    }
    let log = database::open(&config.store).await?;
    match action {
        Action::List(arguments) => list::run(&log, &arguments).await,
        Action::Show(arguments) => list::show(&log, &arguments).await,
        Action::Requeue(arguments) => resolve::run(&log, &arguments, resolve::Verb::Requeue).await,
        Action::Discard(arguments) => resolve::run(&log, &arguments, resolve::Verb::Discard).await,
        Action::Replace(arguments) => replace::run(&log, &arguments).await,
    }
}

/// A dead event of a subscription, without what it says.
struct Dead {
    event_id: Uuid,
    number: i64,
    event_type: String,
    subscription: String,
}
