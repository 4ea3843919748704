//! A corrected event in place of a dead one.

use uuid::Uuid;

use crate::{AuditEntry, Error, ErrorKind, Limits, NewEvent, Payload, Recorded, Result};

/// A corrected event in place of a dead one, which itself never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaceDead {
    /// The dead event.
    pub event_id: Uuid,
    /// The event that is recorded in its place.
    pub by: NewEvent,
    /// Who, for the audit log.
    pub who: String,
    /// Why, for the audit log.
    pub why: String,
}

impl ReplaceDead {
    /// A copy of the dead event with a new id and this payload; its cause is the dead event.
    pub fn of(dead: &Recorded, payload: Payload, who: impl Into<String>, why: impl Into<String>) -> Self {
        let Recorded { stream, event_type, aggregate_type, aggregate_id, .. } = dead;
        let mut by = NewEvent::new(&**stream, &**event_type, &**aggregate_type, aggregate_id, payload);
        by.ordering_key.clone_from(&dead.ordering_key);
        by.headers = dead.headers.clone();
        by.headers.set_causation_id(dead.event_id);
        by.occurred_at = Some(dead.occurred_at);
        by.sequenced = dead.sequence.is_some();
        by.max_attempts = dead.max_attempts;
        Self { event_id: dead.event_id, by, who: who.into(), why: why.into() }
    }

    /// Checks what can be checked without the store, which knows how large a payload may be. Returns the headers of the new event as
    /// the text of a JSON object.
    pub fn check(&self) -> Result<String> {
        self.entry(None).check()?;
        self.by.check(&Limits { payload: usize::MAX, headers: usize::MAX })
    }

    /// The audit entry of a subscription in which the event was dead.
    pub fn entry(&self, subscription: Option<&str>) -> AuditEntry {
        AuditEntry {
            who: self.who.clone(),
            what: format!("replace by {}", self.by.event_id),
            why: Some(self.why.clone()),
            subscription: subscription.map(ToOwned::to_owned),
            event_id: Some(self.event_id),
        }
    }

    /// The event is not dead, or not any more.
    pub fn not_dead(&self, op: &'static str) -> Error {
        let message =
            format!("event {} is not dead for any subscription; nothing was changed", self.event_id);
        Error::new(ErrorKind::Refused, op, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::recorded::tests::event;

    /// E8: what a correction says is new; what it is about is not.
    #[test]
    fn a_replacement_is_as_the_dead_event_but_for_its_payload_and_its_cause() {
        let mut dead = event("7");
        dead.ordering_key = Some("customer 1".into());
        dead.sequence = Some(3);
        dead.max_attempts = Some(4);
        dead.headers.set_schema_version(2);
        dead.headers.set_correlation_id("c");
        dead.headers.set_traceparent("00-1-2-01");
        dead.headers.set_causation_id(Uuid::now_v7());
        let payload = Payload::Json("2".into());
        let ReplaceDead { event_id, by, .. } = ReplaceDead::of(&dead, payload.clone(), "ada", "a typo");
        assert_eq!((event_id, by.headers.causation_id()), (dead.event_id, Some(dead.event_id)));
        assert_ne!(by.event_id, dead.event_id);
        assert_eq!((by.payload, by.ordering_key), (payload, dead.ordering_key));
        assert_eq!((by.stream.as_str(), by.event_type.as_str()), ("orders", "OrderPaid"));
        assert_eq!((by.aggregate_type.as_str(), by.aggregate_id.as_str()), ("Order", "7"));
        assert_eq!((by.sequenced, by.max_attempts, by.occurred_at), (true, Some(4), Some(dead.occurred_at)));
        let headers = (by.headers.schema_version(), by.headers.correlation_id(), by.headers.traceparent());
        assert_eq!(headers, (2, Some("c"), Some("00-1-2-01")));
    }

    #[test]
    fn a_replacement_without_a_reason_is_refused() {
        let refused = ReplaceDead::of(&event("7"), Payload::Json("2".into()), "ada", "").check();
        assert_eq!(refused.expect_err("must be refused").kind(), ErrorKind::Invalid);
    }
}
