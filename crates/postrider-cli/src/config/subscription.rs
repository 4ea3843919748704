//! A subscription of the relay: `[[subscription]]`.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider::store::{Subscription, defaults, nearest};
use postrider::{OffsetDateTime, OnDead, Order, Retry, Start, WhileUnavailable};
use time::format_description::well_known::Rfc3339;

use super::{Problem, Section, Sink, retry};

/// The defaults: of several words, the first.
pub(crate) const EVERYTHING: &[&str] = &["*"];
pub(crate) const ORDERS: [(&str, Order); 3] =
    [("key", Order::Key), ("strict", Order::Strict), ("none", Order::None)];
pub(crate) const START: &str = "beginning";
pub(crate) const ON_DEAD: [(&str, OnDead); 2] = [("skip", OnDead::Skip), ("hold", OnDead::Hold)];
pub(crate) const OUTAGES: [(&str, WhileUnavailable); 2] =
    [("wait", WhileUnavailable::Wait), ("expire", WhileUnavailable::Expire)];
pub(crate) const REPLAYS: [(&str, bool); 2] = [("allow", true), ("forbid", false)];

/// A subscription of the relay.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionSection {
    /// Its name.
    pub(crate) name: String,
    /// The name of its sink.
    pub(crate) sink: String,
    /// Which streams.
    pub(crate) streams: Vec<String>,
    /// Which types.
    pub(crate) types: Vec<String>,
    /// What a failing event holds up.
    pub(crate) order: Order,
    /// In how many lanes.
    pub(crate) lanes: u32,
    /// How many events at once, if the sink is not to say.
    pub(crate) batch: Option<u32>,
    /// Where it starts, the first time.
    pub(crate) start: Start,
    /// When a failed event is tried again.
    pub(crate) retry: Retry,
    /// What happens to a key when one of its events dies.
    pub(crate) on_dead: OnDead,
    /// Whether an outage counts towards an event's age.
    pub(crate) while_unavailable: WhileUnavailable,
    /// How many keys at once.
    pub(crate) concurrency: usize,
    /// How long one event may take.
    pub(crate) timeout: Duration,
    /// How long a batch waits at most for its last events.
    pub(crate) patience: Duration,
    /// How long an unavailable destination is left alone at most.
    pub(crate) longest_pause: Duration,
    /// Whether it may be replayed.
    pub(crate) replay: bool,
}

impl SubscriptionSection {
    /// Reads one.
    pub(crate) fn read(mut section: Section<'_>, sinks: &BTreeMap<String, Sink>) -> Result<Self, Problem> {
        let name = section.need("name", "orders-to-kafka")?;
        let sink = section.need("sink", "kafka")?;
        if !sinks.contains_key(&sink) {
            let what = match nearest(&sink, sinks.keys().map(String::as_str)) {
                Some(meant) => format!("there is no [sink.{sink}]; did you mean {meant:?}?"),
                None => format!("there is no [sink.{sink}]; add it"),
            };
            return Err(section.problem("sink", what));
        }
        let reader = Self {
            name,
            sink,
            streams: patterns(&mut section, "streams")?,
            types: patterns(&mut section, "types")?,
            order: section.word("order", &ORDERS)?.unwrap_or(ORDERS[0].1),
            lanes: at_least_one(&mut section, "lanes")?.unwrap_or(Subscription::LANES),
            batch: at_least_one(&mut section, "batch")?,
            start: start(&mut section)?,
            retry: retry::read(&mut section)?,
            on_dead: section.word("on_dead", &ON_DEAD)?.unwrap_or(ON_DEAD[0].1),
            while_unavailable: section.word("while_unavailable", &OUTAGES)?.unwrap_or(OUTAGES[0].1),
            concurrency: at_least_one(&mut section, "concurrency")?
                .map_or(defaults::CONCURRENCY, |keys| keys as usize),
            timeout: some_time(&mut section, "timeout")?.unwrap_or(defaults::TIMEOUT),
            patience: section.duration("patience")?.unwrap_or(defaults::PATIENCE),
            longest_pause: some_time(&mut section, "longest_pause")?.unwrap_or(defaults::LONGEST_PAUSE),
            replay: section.word("replay", &REPLAYS)?.unwrap_or(REPLAYS[0].1),
        };
        section.finish()?;
        reader.subscription().check().map_err(|error| Problem::new(error.message()))?;
        Ok(reader)
    }

    /// The subscription as a relay with these settings makes it.
    pub(crate) fn subscription(&self) -> Subscription {
        Subscription::new(&self.name)
            .streams(self.streams.clone())
            .types(self.types.clone())
            .lanes(self.lanes)
            .start(self.start)
            .order(self.order)
            .on_dead(self.on_dead)
            .replay(self.replay)
    }
}

fn patterns(section: &mut Section<'_>, key: &'static str) -> Result<Vec<String>, Problem> {
    match section.list(key)? {
        None => Ok(EVERYTHING.iter().map(|&pattern| pattern.to_owned()).collect()),
        Some(list) if list.is_empty() => {
            Err(section.problem(key, "it must not be empty; [\"*\"] matches everything"))
        }
        Some(list) => Ok(list),
    }
}

pub(super) fn at_least_one(section: &mut Section<'_>, key: &'static str) -> Result<Option<u32>, Problem> {
    match section.parsed::<u32>(key, "a number, 1 or more")? {
        Some(0) => Err(section.problem(key, "it must be 1 or more")),
        given => Ok(given),
    }
}

pub(super) fn some_time(section: &mut Section<'_>, key: &'static str) -> Result<Option<Duration>, Problem> {
    match section.duration(key)? {
        Some(time) if time.is_zero() => Err(section.problem(key, "it must be greater than 0")),
        given => Ok(given),
    }
}

fn start(section: &mut Section<'_>) -> Result<Start, Problem> {
    match section.text("start")?.as_deref().unwrap_or(START) {
        "beginning" => Ok(Start::Beginning),
        "now" => Ok(Start::Now),
        text => OffsetDateTime::parse(text, &Rfc3339).map(Start::At).map_err(|_| {
            let what = format!(
                "it must be \"beginning\", \"now\" or a time such as \"2026-01-31T08:00:00Z\", not {text:?}"
            );
            section.problem("start", what)
        }),
    }
}
