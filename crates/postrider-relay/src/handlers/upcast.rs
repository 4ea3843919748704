//! Upcasters: an old version of a payload becomes the newest before a handler sees it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use postrider_core::{Error, ErrorKind, Event, Recorded, Result};
use serde_json::Value;

use crate::{Decode, Failure};

/// How long an event waits for a newer program before it is looked at again.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// What happens to an event of a newer version than its handler takes: this program is older than the one that recorded it.
///
/// ```
/// use postrider::{NewerVersion, Relay, testing::Outbox};
///
/// # use postrider::{Event, Failure, Received};
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(aggregate = "Order", id = order)]
/// # struct OrderPaid { order: i64 }
/// # async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> { Ok(()) }
/// // New versions of these events only add fields.
/// let relay = Relay::new(&Outbox::new())
///     .subscribe("receipts", |s| s.on(receipt).newer_version(NewerVersion::Try));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewerVersion {
    /// It waits for a newer program and loses no attempt.
    #[default]
    Wait,
    /// Its payload is read as the version that the handler takes; fields that the handler's type does not know are ignored. If it can't be
    /// decoded, it waits.
    ///
    /// Right where a newer version only adds fields. A field that kept its name and changed its meaning is read with the old meaning.
    Try,
}

type Step = Arc<dyn Fn(Value) -> Result<Value, Box<dyn StdError + Send + Sync>> + Send + Sync>;

/// Converts payloads of old versions to the next version, step by step.
///
/// - An event of an **older** version goes through all steps up to the newest. If a step is missing, the event is dead until the
///   step exists and an operator requeues it.
/// - An event of a **newer** version (this program is older than the one that recorded it) waits, loses no attempts, and is
///   checked again every 30 s: a rolling deployment resolves it. [`NewerVersion::Try`] reads it instead.
/// - An **unknown field** is ignored, as in `serde`, unless the type denies it.
///
/// ```
/// use postrider::{Event, Failure, Received, Relay, Upcasters, testing::Outbox};
/// use serde_json::{Value, json};
///
/// #[derive(serde::Serialize, serde::Deserialize, Event)]
/// #[event(aggregate = "Order", id = order, version = 2)]
/// struct OrderPaid {
///     order: i64,
///     currency: String,
/// }
///
/// async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> {
///     println!("order {}, in {}", event.order, event.currency);
///     Ok(())
/// }
///
/// // Version 1 had no currency.
/// let upcasters = Upcasters::new().of::<OrderPaid>(1, |mut payload: Value| {
///     payload["currency"] = json!("EUR");
///     payload
/// });
/// let relay = Relay::new(&Outbox::new()).upcasters(upcasters).subscribe("receipts", |s| s.on(receipt));
/// ```
#[derive(Clone, Default)]
pub struct Upcasters {
    steps: BTreeMap<String, BTreeMap<u32, Step>>,
}

impl Upcasters {
    /// No steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the step from version `from` of an event type to `from + 1`.
    #[must_use]
    pub fn step<F, E>(mut self, event_type: &str, from: u32, step: F) -> Self
    where
        F: Fn(Value) -> Result<Value, E> + Send + Sync + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let step: Step = Arc::new(move |value| step(value).map_err(Into::into));
        self.steps.entry(event_type.to_owned()).or_default().insert(from, step);
        self
    }

    /// Adds the step from version `from` of an event to `from + 1`.
    #[must_use]
    pub fn of<T: Event>(self, from: u32, step: impl Fn(Value) -> Value + Send + Sync + 'static) -> Self {
        self.step(T::NAME, from, move |value| Ok::<_, std::convert::Infallible>(step(value)))
    }

    /// Adds the steps of another set that this one does not have.
    #[must_use]
    pub fn with_steps_of(mut self, other: &Self) -> Self {
        for (event_type, steps) in &other.steps {
            let known = self.steps.entry(event_type.clone()).or_default();
            for (from, step) in steps {
                known.entry(*from).or_insert_with(|| step.clone());
            }
        }
        self
    }

    /// The event types and the versions that the steps begin at.
    pub fn steps(&self) -> impl Iterator<Item = (&str, u32)> {
        self.steps.iter().flat_map(|(name, steps)| steps.keys().map(move |from| (name.as_str(), *from)))
    }

    /// The versions of an event type from which the steps lead to `newest` without a gap.
    pub fn versions(&self, event_type: &str, newest: u32) -> Vec<u32> {
        let Some(steps) = self.steps.get(event_type) else { return Vec::new() };
        let mut versions: Vec<u32> =
            (0..newest).rev().take_while(|version| steps.contains_key(version)).collect();
        versions.reverse();
        versions
    }

    /// A payload of version `from` as version `to`. The error does not quote the payload.
    pub fn convert(&self, event_type: &str, from: u32, to: u32, payload: Value) -> Result<Value> {
        self.steps_from(event_type, from, to, payload)
            .map_err(|failure| Error::new(ErrorKind::Invalid, "upcast", failure.to_string()))
    }

    /// Whether the steps of a type lead to `newest` without a gap, from the first of them on.
    pub(crate) fn check(&self, event_type: &str, newest: u32) -> Result<()> {
        let Some(steps) = self.steps.get(event_type) else { return Ok(()) };
        let first = steps.keys().next().copied().unwrap_or(newest);
        let gap = (first..newest).find(|version| !steps.contains_key(version));
        let beyond = steps.keys().next_back().copied().filter(|last| *last >= newest);
        let message = match (gap, beyond) {
            (Some(gap), _) => format!(
                "there is no upcaster of {event_type} from version {gap} to {}, but there is one from {first}",
                gap + 1
            ),
            (None, Some(last)) => format!(
                "there is an upcaster of {event_type} from version {last}, but the handler takes version {newest}"
            ),
            (None, None) => return Ok(()),
        };
        Err(Error::new(ErrorKind::Invalid, "upcast", message))
    }

    /// The payload of an event as the version `wanted` (by default the newest that the steps lead to), decoded.
    pub(crate) fn decode<T: Decode>(
        &self,
        event: &Recorded,
        wanted: Option<u32>,
        newer: NewerVersion,
    ) -> Result<T, Failure> {
        let version = event.headers.schema_version();
        let by_steps =
            || Some(self.steps.get(&*event.event_type)?.keys().next_back().map_or(1, |last| last + 1));
        let Some(newest) = wanted.or_else(by_steps) else { return T::decode(event, None) };
        match (version.cmp(&newest), newer) {
            (Ordering::Less, _) => T::decode(event, Some(self.upcast(event, version, newest)?)),
            (Ordering::Equal, _) => T::decode(event, None),
            (Ordering::Greater, NewerVersion::Wait) => {
                let reason = format!("{} has version {version}", event.event_type);
                Err(waits(&reason, newest))
            }
            (Ordering::Greater, NewerVersion::Try) => {
                T::decode(event, None).map_err(|failure| waits(failure.message(), newest))
            }
        }
    }

    /// The payload as version `newest`.
    fn upcast(&self, event: &Recorded, version: u32, newest: u32) -> Result<Value, Failure> {
        let name = &event.event_type;
        let Some(json) = event.payload.as_json() else {
            let message = format!(
                "{name} has version {version} and is not JSON, so upcasters can't convert it to version {newest}"
            );
            return Err(Failure::reject(message).code("upcast"));
        };
        let value: Value = serde_json::from_str(json).map_err(|_| {
            Failure::reject(format!("the payload of {name} is not valid JSON")).code("undecodable")
        })?;
        self.steps_from(name, version, newest, value)
    }

    fn steps_from(&self, name: &str, version: u32, newest: u32, payload: Value) -> Result<Value, Failure> {
        let steps = self.steps.get(name);
        let mut value = payload;
        for from in version..newest {
            let Some(step) = steps.and_then(|steps| steps.get(&from)) else {
                let message = format!("there is no upcaster of {name} from version {from} to {}", from + 1);
                return Err(Failure::reject(message).code("upcaster_missing"));
            };
            // The step's own error may quote the payload.
            value = step(value).map_err(|_| {
                let message = format!("the upcaster of {name} from version {from} to {} failed", from + 1);
                Failure::reject(message).code("upcast")
            })?;
        }
        Ok(value)
    }
}

fn waits(reason: &str, newest: u32) -> Failure {
    let message = format!(
        "{reason}, but this program knows versions up to {newest}; the event waits for a newer program"
    );
    Failure::hold(PATIENCE, message).code("version_from_the_future")
}

impl fmt::Debug for Upcasters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.steps.iter().map(|(name, steps)| (name, steps.keys().collect::<Vec<_>>())))
            .finish()
    }
}
