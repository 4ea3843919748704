//! A catalog with its types linked in, and a log for them.

use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use postrider_catalog::{Catalog, Lock, LogCheck, LogReport};
use postrider_core::{
    Audit, Check, Error, ErrorKind, EventMapping, EventPage, EventQuery, EventRef, EventState, Figures,
    Headers, Inspect, LoggedEvent, OffsetDateTime, OpenDelivery, OpenDeliveryQuery, PastAttempts, Payload,
    Recorded, RelayInfo, Result, StateQuery, SubscriptionInfo, Uuid,
};
use postrider_relay::Upcasters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::material::name;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Before {
    id: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct After {
    id: String,
    total: i64,
}

/// The second version of each event, and the steps from the first.
pub(super) fn catalog(count: usize) -> Catalog {
    let step = |mut old: Value| {
        old["total"] = json!(0);
        Ok::<_, Infallible>(old)
    };
    let steps = (0..count).fold(Upcasters::new(), |steps, number| steps.step(&name(number), 1, step));
    let mapping =
        |number: usize| EventMapping::new(name(number), "Thing", |thing: &After| thing.id.clone()).version(2);
    (0..count)
        .fold(Catalog::new("shop"), |catalog, number| catalog.mapping(&mapping(number)))
        .upcasters(steps)
}

/// The lock of the first version.
pub(super) fn lock(count: usize) -> Lock {
    let mapping = |number: usize| EventMapping::new(name(number), "Thing", |thing: &Before| thing.id.clone());
    let before = (0..count).fold(Catalog::new("shop"), |catalog, number| catalog.mapping(&mapping(number)));
    let mut lock = Lock::new();
    lock.update(before.file());
    lock
}

/// Reads a log with the types.
pub(super) fn check_log(catalog: &Catalog, log: &Log) -> Option<Result<LogReport>> {
    let options = LogCheck::default();
    let check = pin!(postrider_catalog::check_log(catalog, log, &options));
    // The rows are in memory, so nothing is waited for.
    match check.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(report) => Some(report),
        Poll::Pending => None,
    }
}

/// A log in memory.
pub(super) struct Log(Vec<LoggedEvent>);

impl Log {
    /// An event of each type.
    pub(super) fn of(count: usize) -> Self {
        let recorded = |number: usize| Recorded {
            id: 1,
            event_id: Uuid::nil(),
            stream: "stream".into(),
            event_type: name(number).into(),
            aggregate_type: "Thing".into(),
            aggregate_id: "1".into(),
            ordering_key: None,
            sequence: None,
            payload: Payload::Json(r#"{"id":"1"}"#.to_owned()),
            headers: Headers::new(),
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            recorded_at: OffsetDateTime::UNIX_EPOCH,
            max_attempts: None,
        };
        let events = (0..count).map(|number| LoggedEvent { event: recorded(number), archived: false });
        Self(events.collect())
    }
}

/// What no catalog asks a log.
fn unasked<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Invalid, "bench", "this log has events only"))
}

#[async_trait::async_trait]
impl Inspect for Log {
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>> {
        unasked()
    }

    async fn relays(&self) -> Result<Vec<RelayInfo>> {
        unasked()
    }

    async fn states(&self, _: &StateQuery) -> Result<Vec<EventState>> {
        unasked()
    }

    async fn figures(&self, _: &str) -> Result<Vec<Figures>> {
        unasked()
    }

    async fn figures_up_to(&self, _: &str, _: u32) -> Result<Vec<Figures>> {
        unasked()
    }

    async fn undelivered_over(&self, _: &str, _: Duration) -> Result<u64> {
        unasked()
    }

    async fn unread_since(&self, _: &str) -> Result<Option<OffsetDateTime>> {
        unasked()
    }

    async fn open_deliveries(&self, _: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>> {
        unasked()
    }

    async fn attempts(&self, _: EventRef) -> Result<Vec<PastAttempts>> {
        unasked()
    }

    async fn audits(&self, _: u32) -> Result<Vec<Audit>> {
        unasked()
    }

    async fn checks(&self, _: OffsetDateTime) -> Result<Vec<Check>> {
        unasked()
    }

    async fn events(&self, _: &EventQuery) -> Result<EventPage> {
        let looked = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
        Ok(EventPage { events: self.0.clone(), looked, reached: None, complete: true })
    }
}
