//! The metrics, through the `metrics` facade, under names that Prometheus likes.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use postrider_core::Figures;

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only goes up.
    Counter,
    /// How values are distributed.
    Histogram,
}

/// A metric as it is documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

const BY_STREAM: &[&str] = &["subscription", "stream"];
const BY_TYPE: &[&str] = &["subscription", "event_type"];
const BY_SUBSCRIPTION: &[&str] = &["subscription"];

macro_rules! table {
    ($($constant:ident = $name:literal, $kind:ident, $labels:ident, $help:literal;)+) => {
        $(const $constant: &str = $name;)+

        /// Every metric that a relay emits.
        pub const METRICS: &[Metric] = &[
            $(Metric { name: $name, kind: Kind::$kind, labels: $labels, help: $help }),+
        ];
    };
}

table! {
    PENDING = "postrider_pending", Gauge, BY_STREAM, "events not read yet";
    PROCESSING = "postrider_processing", Gauge, BY_STREAM, "events read and not settled yet";
    RETRYING = "postrider_retrying", Gauge, BY_STREAM, "events that failed and are tried again, or wait behind one that is";
    UNDELIVERED = "postrider_undelivered", Gauge, BY_STREAM, "pending, processing and retrying together";
    DEAD = "postrider_dead", Gauge, BY_STREAM, "events given up until an operator acts";
    OLDEST = "postrider_oldest_undelivered_seconds", Gauge, BY_STREAM, "age of the oldest undelivered event";
    DELIVERED = "postrider_delivered_total", Counter, BY_STREAM, "events delivered";
    DUPLICATES = "postrider_duplicates_total", Counter, BY_STREAM, "events whose effect was there already";
    RETRIED = "postrider_retried_total", Counter, BY_STREAM, "tries that failed and are repeated";
    REJECTED = "postrider_rejected_total", Counter, BY_STREAM, "events that died: rejected, or out of attempts or time";
    ATTEMPTS = "postrider_attempts", Histogram, BY_STREAM, "tries that an event took until it was delivered or died";
    DELIVERY_SECONDS = "postrider_delivery_seconds", Histogram, BY_STREAM, "from recorded to delivered";
    LAG = "postrider_lag_seconds", Gauge, BY_SUBSCRIPTION, "age of the newest event of the last batch when it was settled";
    BATCH = "postrider_batch_size", Histogram, BY_SUBSCRIPTION, "events in a batch";
    LANES = "postrider_lanes_held", Gauge, BY_SUBSCRIPTION, "lanes that this relay works on, or looks after while they are idle";
    BREAKER = "postrider_breaker_open", Gauge, BY_SUBSCRIPTION, "1 while the destination is unavailable, or fails everything";
    HANDLER_SECONDS = "postrider_handler_seconds", Histogram, BY_TYPE, "how long a handler took";
}

/// How long the handler of a type takes.
pub(crate) fn handler_seconds(subscription: &str, event_type: &str) -> Histogram {
    histogram!(HANDLER_SECONDS, "subscription" => subscription.to_owned(), "event_type" => event_type.to_owned())
}

/// How many lanes of a subscription this relay has.
pub(crate) fn lanes(subscription: &str) -> Gauge {
    gauge!(LANES, "subscription" => subscription.to_owned())
}

/// The breaker of a subscription.
pub(crate) fn breaker(subscription: &str) -> Gauge {
    gauge!(BREAKER, "subscription" => subscription.to_owned())
}

/// The meters of one lane's work, looked up once.
pub(crate) struct Meter {
    subscription: String,
    streams: HashMap<Arc<str>, StreamMeter>,
    pub(crate) lag: Gauge,
    pub(crate) batch: Histogram,
}

pub(crate) struct StreamMeter {
    pub(crate) delivered: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) retried: Counter,
    pub(crate) rejected: Counter,
    pub(crate) attempts: Histogram,
    pub(crate) delivery_seconds: Histogram,
}

impl Meter {
    pub(crate) fn new(subscription: &str) -> Self {
        Self {
            subscription: subscription.to_owned(),
            streams: HashMap::new(),
            lag: gauge!(LAG, "subscription" => subscription.to_owned()),
            batch: histogram!(BATCH, "subscription" => subscription.to_owned()),
        }
    }

    pub(crate) fn stream(&mut self, stream: &Arc<str>) -> &StreamMeter {
        let subscription = &self.subscription;
        self.streams.entry(Arc::clone(stream)).or_insert_with(|| {
            let labels = [("subscription", subscription.clone()), ("stream", stream.to_string())];
            StreamMeter {
                delivered: counter!(DELIVERED, &labels),
                duplicates: counter!(DUPLICATES, &labels),
                retried: counter!(RETRIED, &labels),
                rejected: counter!(REJECTED, &labels),
                attempts: histogram!(ATTEMPTS, &labels),
                delivery_seconds: histogram!(DELIVERY_SECONDS, &labels),
            }
        })
    }
}

/// The streams that a subscription's gauges were last set for.
#[derive(Default)]
pub(crate) struct Gauges(Vec<String>);

impl Gauges {
    /// Shows how a subscription is doing; a stream that is no longer mentioned has nothing.
    pub(crate) fn show(&mut self, subscription: &str, figures: &[Figures]) {
        let gone = self.0.iter().filter(|stream| !figures.iter().any(|each| each.stream == **stream));
        let gone = gone.map(|stream| Figures { stream: stream.clone(), ..Figures::default() });
        for each in gone.chain(figures.iter().cloned()).collect::<Vec<_>>() {
            let labels = [("subscription", subscription.to_owned()), ("stream", each.stream.clone())];
            gauge!(PENDING, &labels).set(each.pending as f64);
            gauge!(PROCESSING, &labels).set(each.processing as f64);
            gauge!(RETRYING, &labels).set(each.retrying as f64);
            gauge!(UNDELIVERED, &labels).set(each.undelivered() as f64);
            gauge!(DEAD, &labels).set(each.dead as f64);
            gauge!(OLDEST, &labels).set(each.oldest_seconds);
        }
        self.0 = figures.iter().map(|each| each.stream.clone()).collect();
    }
}
