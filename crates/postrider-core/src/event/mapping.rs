//! Mappings given at run time, for structs that live in another crate.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::{Error, ErrorKind, EventInfo, NewEvent, Result};

type Text<T> = Arc<dyn Fn(&T) -> String + Send + Sync>;

/// Maps a type to events, as a value instead of an [`Event`](crate::Event) implementation.
///
/// ```
/// # extern crate postrider_core as postrider;
/// # fn main() -> postrider::Result<()> {
/// use postrider::EventMapping;
///
/// #[derive(serde::Serialize)]
/// struct Posted {
///     transaction: u64,
///     account: String,
/// }
///
/// let mapping = EventMapping::new("LedgerPosted", "Transaction", |posted: &Posted| posted.transaction.to_string())
///     .stream("ledger")
///     .ordering_key(|posted| posted.account.clone());
/// let event = mapping.event(&Posted { transaction: 9, account: "A-1".into() })?;
/// assert_eq!((event.stream.as_str(), event.aggregate_id.as_str()), ("ledger", "9"));
/// # Ok(())
/// # }
/// ```
pub struct EventMapping<T> {
    name: String,
    version: u32,
    stream: String,
    aggregate_type: String,
    aggregate_id: Text<T>,
    ordering_key: Option<Text<T>>,
    sequenced: bool,
    max_attempts: Option<u32>,
    key_field: Option<String>,
    summary: Option<String>,
}

impl<T: Serialize + 'static> EventMapping<T> {
    /// Maps to events of type `name` on aggregates of `aggregate_type`; `aggregate_id` returns the id.
    pub fn new(
        name: impl Into<String>,
        aggregate_type: impl Into<String>,
        aggregate_id: impl Fn(&T) -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            version: 1,
            stream: "events".into(),
            aggregate_type: aggregate_type.into(),
            aggregate_id: Arc::new(aggregate_id),
            ordering_key: None,
            sequenced: false,
            max_attempts: None,
            key_field: None,
            summary: None,
        }
    }

    /// The version of the payload's schema. Default: 1.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// The stream. Default: `events`.
    #[must_use]
    pub fn stream(mut self, stream: impl Into<String>) -> Self {
        self.stream = stream.into();
        self
    }

    /// The ordering key. Default: the aggregate.
    #[must_use]
    pub fn ordering_key(mut self, key: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        self.ordering_key = Some(Arc::new(key));
        self
    }

    /// Numbers the events within their ordering key, without gaps.
    #[must_use]
    pub fn sequenced(mut self) -> Self {
        self.sequenced = true;
        self
    }

    /// Maximum number of delivery attempts.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// What the event means, in a sentence, and the field that is its ordering key: for the catalog.
    #[must_use]
    pub fn described(mut self, summary: impl Into<String>, key_field: Option<&str>) -> Self {
        self.summary = Some(summary.into());
        self.key_field = key_field.map(Into::into);
        self
    }

    /// What the mapping says about its events, as data.
    pub fn info(&self) -> EventInfo {
        EventInfo {
            name: self.name.clone(),
            version: self.version,
            stream: self.stream.clone(),
            aggregate: self.aggregate_type.clone(),
            ordering_key: self
                .key_field
                .clone()
                .or_else(|| self.ordering_key.as_ref().map(|_| EventInfo::COMPUTED.to_owned())),
            sequenced: self.sequenced,
            summary: self.summary.clone(),
        }
    }

    /// The event of a value.
    pub fn event(&self, value: &T) -> Result<NewEvent> {
        let id = (self.aggregate_id)(value);
        let mut event = NewEvent::of(&self.stream, &self.name, &self.aggregate_type, id, value)?;
        event.headers.set_schema_version(self.version);
        event.ordering_key = self.ordering_key.as_ref().map(|key| key(value));
        event.sequenced = self.sequenced;
        event.max_attempts = self.max_attempts;
        Ok(event)
    }
}

/// Mappings by type. Cheap to clone.
///
/// ```
/// # extern crate postrider_core as postrider;
/// # fn main() -> postrider::Result<()> {
/// use postrider::{EventMapping, EventMappings};
///
/// #[derive(serde::Serialize)]
/// struct Posted {
///     transaction: u64,
/// }
///
/// #[derive(serde::Serialize)]
/// struct Closed {
///     account: String,
/// }
///
/// let mappings = EventMappings::new()
///     .with(EventMapping::new("LedgerPosted", "Transaction", |posted: &Posted| posted.transaction.to_string()))
///     .with(EventMapping::new("AccountClosed", "Account", |closed: &Closed| closed.account.clone()));
/// let event = mappings.event(&Closed { account: "A-1".into() })?; // record it with an outbox
/// assert_eq!(event.event_type, "AccountClosed");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct EventMappings(Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl EventMappings {
    /// No mappings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mapping; a second one for the same type replaces the first.
    #[must_use]
    pub fn with<T: Serialize + 'static>(mut self, entry: EventMapping<T>) -> Self {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), Arc::new(entry));
        self
    }

    /// The event of a value whose type has a mapping.
    pub fn event<T: Serialize + 'static>(&self, value: &T) -> Result<NewEvent> {
        self.0.get(&TypeId::of::<T>()).and_then(|entry| entry.downcast_ref::<EventMapping<T>>()).map_or_else(
            || {
                Err(Error::new(
                    ErrorKind::Invalid,
                    "record",
                    format!("there is no mapping for {}; add one with EventMappings::with", type_name::<T>()),
                ))
            },
            |entry| entry.event(value),
        )
    }
}

impl fmt::Debug for EventMappings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventMappings({} entries)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Posted {
        transaction: u64,
        account: String,
    }

    #[test]
    fn a_struct_of_another_crate_is_mapped_by_a_catalog_entry() {
        let catalog = EventMappings::new().with(
            EventMapping::new("LEDGER_POSTED", "Transaction", |posted: &Posted| {
                posted.transaction.to_string()
            })
            .stream("ledger")
            .ordering_key(|posted: &Posted| posted.account.clone())
            .sequenced()
            .max_attempts(5),
        );
        let event = catalog.event(&Posted { transaction: 9, account: "A-1".into() }).expect("mapped");
        assert_eq!(event.ordering_key.as_deref(), Some("A-1"));
        assert_eq!((event.sequenced, event.max_attempts), (true, Some(5)));
    }

    #[test]
    fn a_type_without_an_entry_is_named_in_the_error() {
        let error = EventMappings::new().event(&String::from("x")).expect_err("no entry").to_string();
        assert!(error.contains("String"), "{error}");
    }
}
