//! An endpoint that answers as it is told, and what is asked of a relay to it.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use postrider::store::{EventState, OutboxSource, State, StateQuery};
use postrider::testing::Outbox;
use postrider::{NewEvent, Relay, Retry, Running, Subscriber, Uuid};
use postrider_http::{Http, HttpBuilder};

use crate::support::{Endpoint, Request};

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) static METRICS: LazyLock<PrometheusHandle> =
    LazyLock::new(|| PrometheusBuilder::new().install_recorder().expect("the only recorder"));

/// An endpoint that answers as it is told at the moment: by the key of a request.
#[derive(Clone)]
pub(crate) struct Manner(Arc<Mutex<Answer>>);

type Answer = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Manner {
    pub(crate) fn is(answer: impl Fn(&str) -> Option<&'static str> + Send + Sync + 'static) -> Self {
        let manner = Self(Arc::new(Mutex::new(Arc::new(|_| None))));
        manner.becomes(answer);
        manner
    }

    pub(crate) fn becomes(&self, answer: impl Fn(&str) -> Option<&'static str> + Send + Sync + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(move |key| answer(key).map(ToOwned::to_owned));
    }

    pub(crate) async fn endpoint(&self) -> Endpoint {
        self.slow_endpoint(Duration::ZERO).await
    }

    /// One that takes its time.
    pub(crate) async fn slow_endpoint(&self, pause: Duration) -> Endpoint {
        let manner = self.clone();
        Endpoint::start_slow(pause, move |request: &Request| {
            let answer = Arc::clone(&manner.0.lock().unwrap_or_else(PoisonError::into_inner));
            answer(request.header("ce-subject"))
        })
        .await
    }
}

pub(crate) fn ok(_: &str) -> Option<&'static str> {
    Some("200 OK")
}

pub(crate) async fn record(outbox: &Outbox, order: &str, version: i64) -> Uuid {
    let event = NewEvent::of("orders", "OrderPaid", "Order", order, &version).expect("an event");
    outbox.record_alone(&event).await.expect("recorded")
}

/// A relay under which any attempt that is charged is the last.
pub(crate) async fn relay(outbox: &Outbox, name: &str, sink: Http) -> Running {
    relay_with(outbox, name, sink, |s| s.retry(Retry::fixed(Duration::from_millis(5)).max_attempts(1))).await
}

pub(crate) async fn relay_with(
    outbox: &Outbox,
    name: &str,
    sink: Http,
    more: impl FnOnce(Subscriber<Outbox>) -> Subscriber<Outbox>,
) -> Running {
    LazyLock::force(&METRICS);
    let usual = |s: Subscriber<Outbox>| {
        more(s.sink(sink).longest_pause(Duration::from_millis(40)).timeout(Duration::from_millis(300)))
    };
    Relay::new(outbox).subscribe(name, usual).start().await.expect("started")
}

pub(crate) fn sink(endpoint: &Endpoint, builder: HttpBuilder) -> Http {
    builder.build(&endpoint.url()).expect("a sink")
}

pub(crate) async fn state(relay: &Running, name: &str, event_id: Uuid) -> EventState {
    let query =
        StateQuery { subscription: Some(name.to_owned()), event_id: Some(event_id), ..StateQuery::default() };
    relay.store().states(&query).await.expect("states").pop().expect("a state")
}

/// Whether the breaker of a subscription is open.
pub(crate) fn is_away(name: &str) -> bool {
    METRICS.render().contains(&format!("postrider_breaker_open{{subscription=\"{name}\"}} 1"))
}

/// Nothing of these is charged, dead or done.
pub(crate) async fn assert_untouched(relay: &Running, name: &str, events: &[Uuid]) {
    for event in events {
        let waits = state(relay, name, *event).await;
        assert!(!matches!(waits.state, State::Dead | State::Done), "{name}: {waits:?}");
        // The try that is under way shows, and is not charged.
        let under_way = u32::from(waits.state == State::Processing && waits.attempts > 0);
        assert_eq!((waits.attempts - under_way, waits.error_code), (0, None), "{name}");
    }
}

pub(crate) async fn assert_done(relay: &Running, name: &str, events: &[Uuid]) {
    for event in events {
        let done = state(relay, name, *event).await;
        assert_eq!(done.state, State::Done, "{name}: {done:?}");
    }
}

pub(crate) fn keys_of(requests: &[Request]) -> HashSet<&str> {
    requests.iter().map(|request| request.header("ce-subject")).collect()
}
