//! `postrider subscriptions create`: by flags, or as the settings have it.

use clap::Args;
use postrider::store::{History, Subscription, nearest};
use postrider::{OnDead, Order, Start};

use super::super::times;
use super::{Answer, wanted};
use crate::Failure;
use crate::config::subscription::{ON_DEAD, ORDERS, START};
use crate::config::{Config, Problem, SubscriptionSection};
use crate::confirm::Consent;
use crate::database::SharedStore;
use crate::output;

/// The flags of `create`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Name of the subscription; without other flags it comes from the settings (default: all of the settings)
    name: Option<String>,
    /// Only events of this stream; * matches any characters; can be repeated
    #[arg(long = "stream", value_name = "PATTERN", requires = "name")]
    streams: Vec<String>,
    /// Only events of this type; * matches any characters; can be repeated
    #[arg(long = "type", value_name = "PATTERN", requires = "name")]
    types: Vec<String>,
    #[arg(long, value_name = "COUNT", requires = "name",
        help = format!("Number of lanes: how many relays can share it (default: {})", Subscription::LANES))]
    lanes: Option<u32>,
    #[arg(long, value_name = "START", value_parser = start, requires = "name",
        help = format!("Where it starts to read: beginning, now, or a time (default: {START})"))]
    start: Option<Start>,
    #[arg(long, value_parser = order, requires = "name", help = format!(
        "What a failing event blocks: its key (key), its lane (strict) or nothing (none) (default: {})", ORDERS[0].0))]
    order: Option<Order>,
    #[arg(long, value_name = "WHAT", value_parser = on_dead, requires = "name",
        help = format!("After an event died: go on with its key (skip) or block it (hold) (default: {})", ON_DEAD[0].0))]
    on_dead: Option<OnDead>,
    /// Forbid replay
    #[arg(long, requires = "name")]
    no_replay: bool,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    consent: Consent,
}

fn start(text: &str) -> Result<Start, String> {
    match text {
        "beginning" => Ok(Start::Beginning),
        "now" => Ok(Start::Now),
        _ => times::time(text)
            .map(Start::At)
            .map_err(|what| format!("it must be beginning, now or a time; {what}")),
    }
}

fn order(text: &str) -> Result<Order, String> {
    text.parse().map_err(|error: postrider::Error| error.message().to_owned())
}

fn on_dead(text: &str) -> Result<OnDead, String> {
    text.parse().map_err(|error: postrider::Error| error.message().to_owned())
}

impl Arguments {
    fn has_flags(&self) -> bool {
        !self.streams.is_empty()
            || !self.types.is_empty()
            || self.lanes.is_some()
            || self.start.is_some()
            || self.order.is_some()
            || self.on_dead.is_some()
            || self.no_replay
    }

    fn by_flags(&self, name: &str) -> Subscription {
        Subscription::new(name)
            .streams(self.streams.clone())
            .types(self.types.clone())
            .lanes(self.lanes.unwrap_or(1))
            .start(self.start.unwrap_or(Start::Beginning))
            .order(self.order.unwrap_or(Order::Key))
            .on_dead(self.on_dead.unwrap_or(OnDead::Skip))
            .replay(!self.no_replay)
    }

    /// What is to be made.
    fn asked_for(&self, config: &Config) -> Result<Vec<Subscription>, Problem> {
        let Some(name) = &self.name else {
            if config.readers.is_empty() {
                let what = "the settings have no [[subscription]]; pass a name, and flags for its filter";
                return Err(Problem::new(what));
            }
            return Ok(config.readers.iter().map(SubscriptionSection::subscription).collect());
        };
        if !self.has_flags() {
            if let Some(reader) = config.readers.iter().find(|reader| reader.name == *name) {
                return Ok(vec![reader.subscription()]);
            }
            let names = config.readers.iter().map(|reader| reader.name.as_str());
            if let Some(meant) = nearest(name, names) {
                let what = format!(
                    "the settings have no subscription {name:?}; did you mean {meant:?}? To create a new one, pass a filter: --stream '*' matches everything"
                );
                return Err(Problem::new(what));
            }
        }
        Ok(vec![self.by_flags(name)])
    }
}

fn from(start: Start) -> String {
    match start {
        Start::Beginning => "the beginning of the log".to_owned(),
        Start::Now => "now on".to_owned(),
        Start::At(time) => time.to_string(),
    }
}

/// What a new subscription gets of the log as it is.
fn will_receive(history: History) -> String {
    let History { events, exact } = history;
    let at_least = if exact { "" } else { "at least " };
    match events {
        0 if exact => "the log has no events for it yet".to_owned(),
        0 => "none of the first events in the log is for it; later ones may be".to_owned(),
        1 => format!("it will receive {at_least}1 event that is already in the log"),
        _ => {
            format!("it will receive {at_least}{} events that are already in the log", output::number(events))
        }
    }
}

/// Makes what is not there yet.
pub(crate) async fn run(log: &SharedStore, config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    arguments.consent.check()?;
    let asked_for = arguments.asked_for(config)?;
    for subscription in &asked_for {
        subscription.check().map_err(|error| Problem::new(error.message()))?;
    }
    let there = log.subscriptions().await?;
    let mut answers = Vec::new();
    for subscription in asked_for {
        let name = &subscription.name;
        if there.iter().any(|info| info.subscription.name == *name) {
            if arguments.name.is_some() {
                let what = format!(
                    "the subscription {name:?} already exists; change its lanes with `postrider subscriptions lanes`, and the rest in the settings of its relays"
                );
                return Err(what.into());
            }
            answers.push(Answer::of(name, false, "already exists".to_owned()));
            continue;
        }
        let (streams, types) = wanted(&subscription);
        let question = format!(
            "Create {name}, from {}, with streams {streams} and types {types}?",
            from(subscription.start)
        );
        if !arguments.consent.not_refused(&question)? {
            return Ok(false);
        }
        log.subscribe(&subscription).await?;
        // It is created, whether it can be counted or not.
        let history = History::of(log.as_ref(), name).await.ok();
        let counted = history.map(|history| format!("{history} in the log; ")).unwrap_or_default();
        let what = format!("create ({counted}streams {streams}, types {types})");
        let what = what.chars().take(100).collect::<String>();
        arguments.consent.audit(log.as_ref(), &what, Some(name), None).await?;
        let counted = history.map(|history| format!("; {}", will_receive(history))).unwrap_or_default();
        answers.push(Answer::of(
            name,
            true,
            format!("is created: streams {streams}, types {types}{counted}"),
        ));
    }
    if arguments.json {
        output::json(&answers)?;
    } else {
        answers.iter().try_for_each(Answer::line)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_there_is_nothing_yet_is_said_only_if_all_was_counted() {
        let said = |events, exact| will_receive(History { events, exact });
        assert_eq!(said(0, true), "the log has no events for it yet");
        assert_eq!(said(0, false), "none of the first events in the log is for it; later ones may be");
        assert_eq!(said(1, true), "it will receive 1 event that is already in the log");
        assert_eq!(said(4000, false), "it will receive at least 4,000 events that are already in the log");
    }
}
