//! The metrics, through the `metrics` facade, under names that Prometheus likes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use postrider_core::{Figures, Requests, Sink, Subscription};

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only goes up.
    Counter,
    /// How values are distributed.
    Histogram,
}

/// The description of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Whether it is a counter, a gauge or a histogram.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Its description.
    pub help: &'static str,
}

const BY_STREAM: &[&str] = &["subscription", "stream"];
const BY_TYPE: &[&str] = &["subscription", "event_type"];
const BY_CODE: &[&str] = &["subscription", "code"];
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
    RETRYING = "postrider_retrying", Gauge, BY_STREAM, "events that failed and will be retried, or wait for one that will";
    UNDELIVERED = "postrider_undelivered", Gauge, BY_STREAM, "pending, processing and retrying together";
    DEAD = "postrider_dead", Gauge, BY_STREAM, "events that are dead until an operator acts";
    OLDEST = "postrider_oldest_undelivered_seconds", Gauge, BY_STREAM, "age of the oldest undelivered event";
    MEAN_ATTEMPTS = "postrider_mean_attempts", Gauge, BY_STREAM, "attempts of an undelivered event, on average; 0 if there is none";
    DELIVERED = "postrider_delivered_total", Counter, BY_STREAM, "events delivered";
    DUPLICATES = "postrider_duplicates_total", Counter, BY_STREAM, "events that had already been handled";
    RETRIED = "postrider_retried_total", Counter, BY_STREAM, "attempts that failed and will be retried";
    REJECTED = "postrider_rejected_total", Counter, BY_STREAM, "events that died: rejected, or out of attempts or time";
    DEATHS = "postrider_deaths_total", Counter, BY_SUBSCRIPTION, "events that died, over all streams; starts at 0, so alerts see the first death";
    ATTEMPTS = "postrider_attempts", Histogram, BY_STREAM, "attempts that an event took until it was delivered or died";
    DELIVERY_SECONDS = "postrider_delivery_seconds", Histogram, BY_STREAM, "time from recording to delivery";
    LAG = "postrider_lag_seconds", Gauge, BY_SUBSCRIPTION, "age of the newest event of the last batch at its settle";
    BATCH = "postrider_batch_size", Histogram, BY_SUBSCRIPTION, "events in a batch";
    LANES = "postrider_lanes_held", Gauge, BY_SUBSCRIPTION, "lanes that this relay works on, or watches while they are idle";
    PAUSED = "postrider_paused", Gauge, BY_SUBSCRIPTION, "1 while an operator has paused the subscription";
    BREAKER = "postrider_breaker_open", Gauge, BY_SUBSCRIPTION, "1 while the destination is unavailable, or fails everything";
    REQUESTS = "postrider_requests_total", Counter, BY_CODE, "requests to an HTTP endpoint, and batches sent to Kafka, by result";
    REQUEST_SECONDS = "postrider_request_seconds", Histogram, BY_SUBSCRIPTION, "how long such a request took";
    HANDLER_SECONDS = "postrider_handler_seconds", Histogram, BY_TYPE, "how long a handler took";
}

impl Metric {
    /// Registers its description with the recorder.
    pub fn describe(&self) {
        let unit = if self.name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count };
        match self.kind {
            Kind::Gauge => describe_gauge!(self.name, unit, self.help),
            Kind::Counter => describe_counter!(self.name, unit, self.help),
            Kind::Histogram => describe_histogram!(self.name, unit, self.help),
        }
    }
}

/// A subscription begins: says what its metrics mean, and shows what is counted at 0, so that the first of it is an increase. Streams
/// are known by name where the filter names them; others as soon as the figures, or the first of their events, show them.
pub(crate) fn begin(subscription: &Subscription, sink: &dyn Sink) {
    METRICS.iter().for_each(Metric::describe);
    deaths(&subscription.name).increment(0);
    let named = subscription.filter.streams.iter().filter(|pattern| !pattern.as_str().contains('*'));
    for stream in named {
        StreamMetrics::new(&subscription.name, stream.as_str());
    }
    let requests = RequestMetrics::new(&subscription.name);
    for code in sink.codes() {
        requests.counter(code).increment(0);
    }
}

/// The requests of a subscription's sink.
#[derive(Debug)]
pub(crate) struct RequestMetrics {
    subscription: String,
    /// Made with the first request: handlers make none.
    seconds: OnceLock<Histogram>,
    codes: Mutex<HashMap<String, Counter>>,
}

/// The number of different error codes of a subscription that are counted by name; others share one label.
const MOST_CODES: usize = 100;
/// What is counted for the others, and for what is no code.
const OTHER: &str = "other";

impl RequestMetrics {
    pub(crate) fn new(subscription: &str) -> Self {
        Self { subscription: subscription.to_owned(), seconds: OnceLock::new(), codes: Mutex::default() }
    }

    fn counter(&self, code: &str) -> Counter {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = codes.get(code) {
            return counter.clone();
        }
        let is_code = (1..=64).contains(&code.len())
            && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        let code = if is_code && codes.len() < MOST_CODES { code } else { OTHER };
        let labels = [("subscription", self.subscription.clone()), ("code", code.to_owned())];
        codes.entry(code.to_owned()).or_insert_with(|| counter!(REQUESTS, &labels)).clone()
    }
}

impl Requests for RequestMetrics {
    fn made(&self, code: &str, took: Duration) {
        self.counter(code).increment(1);
        let seconds = || histogram!(REQUEST_SECONDS, "subscription" => self.subscription.clone());
        self.seconds.get_or_init(seconds).record(took.as_secs_f64());
    }
}

/// How long the handler of a type takes.
pub(crate) fn handler_seconds(subscription: &str, event_type: &str) -> Histogram {
    histogram!(HANDLER_SECONDS, "subscription" => subscription.to_owned(), "event_type" => event_type.to_owned())
}

/// How many events of a subscription died.
fn deaths(subscription: &str) -> Counter {
    counter!(DEATHS, "subscription" => subscription.to_owned())
}

/// How many lanes of a subscription this relay has.
pub(crate) fn lanes(subscription: &str) -> Gauge {
    gauge!(LANES, "subscription" => subscription.to_owned())
}

/// Whether a subscription is paused.
pub(crate) fn paused(subscription: &str) -> Gauge {
    gauge!(PAUSED, "subscription" => subscription.to_owned())
}

/// The breaker of a subscription.
pub(crate) fn breaker(subscription: &str) -> Gauge {
    gauge!(BREAKER, "subscription" => subscription.to_owned())
}

/// The meters of one lane's work, looked up once.
pub(crate) struct LaneMetrics {
    subscription: String,
    streams: HashMap<Arc<str>, StreamMetrics>,
    /// The stream of the last event that was read.
    last: Option<Arc<str>>,
    pub(crate) deaths: Counter,
    pub(crate) lag: Gauge,
    pub(crate) batch: Histogram,
}

pub(crate) struct StreamMetrics {
    pub(crate) delivered: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) retried: Counter,
    pub(crate) rejected: Counter,
    pub(crate) attempts: Histogram,
    pub(crate) delivery_seconds: Histogram,
}

impl LaneMetrics {
    pub(crate) fn new(subscription: &str) -> Self {
        Self {
            subscription: subscription.to_owned(),
            streams: HashMap::new(),
            last: None,
            deaths: deaths(subscription),
            lag: gauge!(LAG, "subscription" => subscription.to_owned()),
            batch: histogram!(BATCH, "subscription" => subscription.to_owned()),
        }
    }

    /// An event of a stream was read: what is counted of the stream is there from now on. Names are shared among the events of a batch,
    /// so this is next to nothing.
    pub(crate) fn read(&mut self, stream: &Arc<str>) {
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, stream)) {
            self.stream(stream);
            self.last = Some(Arc::clone(stream));
        }
    }

    pub(crate) fn stream(&mut self, stream: &Arc<str>) -> &StreamMetrics {
        let new = || StreamMetrics::new(&self.subscription, stream);
        self.streams.entry(Arc::clone(stream)).or_insert_with(new)
    }
}

impl StreamMetrics {
    /// What is counted of it is there from now on.
    fn new(subscription: &str, stream: &str) -> Self {
        let labels = [("subscription", subscription.to_owned()), ("stream", stream.to_owned())];
        Self {
            delivered: counter!(DELIVERED, &labels),
            duplicates: counter!(DUPLICATES, &labels),
            retried: counter!(RETRIED, &labels),
            rejected: counter!(REJECTED, &labels),
            attempts: histogram!(ATTEMPTS, &labels),
            delivery_seconds: histogram!(DELIVERY_SECONDS, &labels),
        }
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
            if !self.0.contains(&each.stream) {
                StreamMetrics::new(subscription, &each.stream);
            }
            gauge!(PENDING, &labels).set(each.pending as f64);
            gauge!(PROCESSING, &labels).set(each.processing as f64);
            gauge!(RETRYING, &labels).set(each.retrying as f64);
            gauge!(UNDELIVERED, &labels).set(each.undelivered() as f64);
            gauge!(DEAD, &labels).set(each.dead as f64);
            gauge!(OLDEST, &labels).set(each.oldest_seconds);
            gauge!(MEAN_ATTEMPTS, &labels).set(each.mean_attempts());
        }
        self.0 = figures.iter().map(|each| each.stream.clone()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_bounded_and_never_free_text() {
        let metrics = RequestMetrics::new("s");
        for code in ["200", "timeout", "", "no such card: 4711", "Größe", &"x".repeat(65)] {
            metrics.made(code, Duration::ZERO);
        }
        let known = || {
            let mut known: Vec<String> = metrics.codes.lock().expect("codes").keys().cloned().collect();
            known.sort();
            known
        };
        assert_eq!(known(), ["200", OTHER, "timeout"]);
        (0..1000).for_each(|code| metrics.made(&format!("code_{code}"), Duration::ZERO));
        assert!(known().len() <= MOST_CODES + 1, "{}", known().len());
    }
}
