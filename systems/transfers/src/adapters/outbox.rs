//! The event of a transfer as Postrider records and reads it.

use postrider::store::Recordable as _;
use postrider::{Event, NewEvent};

use crate::application::ports::Origin;
use crate::domain::TransferCompleteEvent;

/// Who publishes.
pub const SOURCE: &str = "/transaction-service";

/// The order is kept by sender: what a sender did first is analysed first, and that is what the rule of speed needs. The transfer
/// itself, as a key, would keep no order at all: it has one event.
impl Event for TransferCompleteEvent {
    const NAME: &'static str = "TransferCompleted";
    const STREAM: &'static str = "transfers";
    const AGGREGATE: &'static str = "Transfer";
    const KEY_FIELD: Option<&'static str> = Some("fromAccount");

    fn aggregate_id(&self) -> String {
        self.transaction_id.to_string()
    }

    fn ordering_key(&self) -> Option<String> {
        Some(self.from_account.clone())
    }
}

/// The event to record, with where it comes from in its headers. Attributes are a client's: one that has the name of a header with a
/// meaning is refused.
pub fn event_of(event: &TransferCompleteEvent, origin: &Origin) -> postrider::Result<NewEvent> {
    let mut new = event.to_new_event()?.into_owned();
    for (name, value) in &origin.attributes {
        new.headers.set_own(name, value)?;
    }
    if let Some(trace) = &origin.trace {
        new.headers.set_traceparent(trace);
    }
    new.headers.set_source(SOURCE);
    Ok(new)
}
