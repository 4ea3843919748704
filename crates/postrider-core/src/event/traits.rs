//! How a domain struct becomes an event: a mapping that the struct itself need not know.

use std::borrow::Cow;

use serde::Serialize;

use crate::{NewEvent, Result};

/// The mapping of a type to events: name, version, stream, aggregate, ordering.
///
/// Derive it (`#[derive(Event)]`), or implement it in an adapter module to keep the domain struct free of it. For a struct of
/// another crate, use [`EventMappings`](crate::EventMappings).
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::Event;
///
/// /// An order is paid.
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct OrderPaid {
///     order: u64,
///     account: String,
/// }
///
/// impl Event for OrderPaid {
///     const NAME: &'static str = "OrderPaid";
///     const STREAM: &'static str = "orders";
///     const AGGREGATE: &'static str = "Order";
///
///     fn aggregate_id(&self) -> String {
///         self.order.to_string()
///     }
///
///     // Events with one account are delivered in order. Without this method: those of one order.
///     fn ordering_key(&self) -> Option<String> {
///         Some(self.account.clone())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event: it does not implement `Event`",
    label = "not an event",
    note = "derive it: `#[derive(serde::Serialize, serde::Deserialize, postrider::Event)]` and `#[event(aggregate = \"Order\", id = order)]`",
    note = "or implement `postrider::Event` for it in an adapter module"
)]
pub trait Event: Serialize {
    /// The event type, in the past tense: `OrderPaid`.
    const NAME: &'static str;
    /// The version of the payload's schema.
    const VERSION: u32 = 1;
    /// The stream.
    const STREAM: &'static str = "events";
    /// The type of the aggregate, such as `Order`.
    const AGGREGATE: &'static str;
    /// Whether to number it within its ordering key, without gaps. This locks the key's counter until the transaction ends, and
    /// keeps the key's order even if the application takes no lock.
    const SEQUENCED: bool = false;
    /// Maximum number of delivery attempts. Default: the subscription's.
    const MAX_ATTEMPTS: Option<u32> = None;
    /// The field that [`ordering_key`](Event::ordering_key) returns, for the catalog.
    const KEY_FIELD: Option<&'static str> = None;
    /// What the event means, in a sentence, for the catalog. The derive takes it from the doc comment.
    const SUMMARY: Option<&'static str> = None;

    /// The id of the aggregate.
    fn aggregate_id(&self) -> String;

    /// The ordering key. Default: the aggregate.
    fn ordering_key(&self) -> Option<String> {
        None
    }
}

/// What `record` takes: a typed [`Event`], or a [`NewEvent`] that is built by hand or by a mapping.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be recorded: it is not an event",
    label = "neither an `Event` nor a `NewEvent`",
    note = "derive it: `#[derive(serde::Serialize, serde::Deserialize, postrider::Event)]` and `#[event(aggregate = \"Order\", id = order)]`"
)]
pub trait Recordable {
    /// The event to record: owned if it was made for this call, with a unique id.
    fn to_new_event(&self) -> Result<Cow<'_, NewEvent>>;
}

impl<E: Event> Recordable for E {
    fn to_new_event(&self) -> Result<Cow<'_, NewEvent>> {
        let mut event = NewEvent::of(E::STREAM, E::NAME, E::AGGREGATE, self.aggregate_id(), self)?;
        event.headers.set_schema_version(E::VERSION);
        event.ordering_key = self.ordering_key();
        event.sequenced = E::SEQUENCED;
        event.max_attempts = E::MAX_ATTEMPTS;
        Ok(Cow::Owned(event))
    }
}

impl Recordable for NewEvent {
    fn to_new_event(&self) -> Result<Cow<'_, NewEvent>> {
        Ok(Cow::Borrowed(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct OrderPaid {
        order: i64,
    }

    impl Event for OrderPaid {
        const NAME: &'static str = "OrderPaid";
        const VERSION: u32 = 2;
        const STREAM: &'static str = "orders";
        const AGGREGATE: &'static str = "Order";

        fn aggregate_id(&self) -> String {
            self.order.to_string()
        }
    }

    #[test]
    fn a_pure_struct_becomes_an_event_by_its_mapping() {
        let event = OrderPaid { order: 7 }.to_new_event().expect("valid");
        assert_eq!((event.stream.as_str(), event.event_type.as_str()), ("orders", "OrderPaid"));
        assert_eq!((event.aggregate_type.as_str(), event.aggregate_id.as_str()), ("Order", "7"));
        assert_eq!(event.headers.schema_version(), 2);
        assert_eq!(event.payload.as_json(), Some(r#"{"order":7}"#));
    }
}
