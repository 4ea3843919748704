//! The settings that an outbox applies to every event before it is recorded.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{Allowed, Error, ErrorKind, Limits, NewEvent, Recordable, Result, Trace};

/// What an outbox adds to the events that it records, which ones it takes, and how large they may be.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// The header `source` of events that have none.
    pub source: Option<Arc<str>>,
    /// Gives the header `traceparent` of events that have none.
    pub trace: Option<Trace>,
    /// The limits that every event must meet.
    pub limits: Limits,
    /// The streams and event types that it takes.
    pub allowed: Allowed,
}

impl RecordOptions {
    /// The event with its source and its trace, checked against the limits.
    pub fn prepare(&self, event: &(impl Recordable + ?Sized)) -> Result<NewEvent> {
        let mut event = event.to_new_event()?.into_owned();
        self.allowed.check(&event)?;
        if let Some(source) = &self.source
            && event.headers.source().is_none()
        {
            event.headers.set_source(&**source);
        }
        if event.headers.traceparent().is_none()
            && let Some(trace) = self.trace.as_ref().and_then(Trace::current)
        {
            event.headers.set_traceparent(trace);
        }
        event.check(&self.limits)?;
        Ok(event)
    }

    /// The same for several events, which must have different ids.
    pub fn prepare_all(&self, events: &[impl Recordable]) -> Result<Vec<NewEvent>> {
        let events = events.iter().map(|event| self.prepare(event)).collect::<Result<Vec<_>>>()?;
        let ids: HashSet<_> = events.iter().map(|event| event.event_id).collect();
        if ids.len() < events.len() {
            let message = "two of the events have the same id; nothing was written";
            return Err(Error::new(ErrorKind::Invalid, "record", message));
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_and_a_trace_of_its_own_stay_with_an_event() {
        let trace = Some(Trace::new(|| Some("00-1-2-01".to_owned())));
        let options = RecordOptions { source: Some("shop".into()), trace, ..RecordOptions::default() };
        let mut event = NewEvent::of("orders", "Paid", "Order", "1", &1).expect("JSON");
        let prepared = options.prepare(&event).expect("prepared");
        assert_eq!(
            (prepared.headers.source(), prepared.headers.traceparent()),
            (Some("shop"), Some("00-1-2-01"))
        );
        event.headers.set_source("till");
        event.headers.set_traceparent("00-3-4-01");
        let prepared = options.prepare(&event).expect("prepared");
        assert_eq!(
            (prepared.headers.source(), prepared.headers.traceparent()),
            (Some("till"), Some("00-3-4-01"))
        );
    }

    #[test]
    fn two_events_with_one_id_are_refused() {
        let event = NewEvent::of("orders", "Paid", "Order", "1", &1).expect("JSON");
        let refused = RecordOptions::default().prepare_all(&[event.clone(), event]).expect_err("one id");
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
}
