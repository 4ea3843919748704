//! The streams and event types that a publisher may publish.

use std::sync::Arc;

use crate::{Error, ErrorKind, Filter, NewEvent, Pattern, Result};

/// The streams and event types that a publisher may publish. Default: all of them. Cheap to clone.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::{Allowed, NewEvent};
///
/// # fn main() -> postrider::Result<()> {
/// let allowed = Allowed::default().streams(["orders"]).types(["Order*"]);
/// let paid = NewEvent::of("orders", "OrderPaid", "Order", "7", &7)?;
/// assert!(allowed.check(&paid).is_ok());
/// let sent = NewEvent::of("mails", "MailSent", "Mail", "7", &7)?;
/// assert!(allowed.check(&sent).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed(Arc<Filter>);

impl Allowed {
    /// Adds streams; `*` matches any characters.
    #[must_use]
    pub fn streams<T: Into<String>>(mut self, streams: impl IntoIterator<Item = T>) -> Self {
        Arc::make_mut(&mut self.0).streams.extend(streams.into_iter().map(Pattern::new));
        self
    }

    /// Adds event types; `*` matches any characters.
    #[must_use]
    pub fn types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        Arc::make_mut(&mut self.0).types.extend(types.into_iter().map(Pattern::new));
        self
    }

    /// Checks that an event may be published. The error names its stream or type, and those that are allowed.
    pub fn check(&self, event: &NewEvent) -> Result<()> {
        let parts =
            [("stream", &event.stream, &self.0.streams), ("event type", &event.event_type, &self.0.types)];
        for (what, name, patterns) in parts {
            if !patterns.is_empty() && !patterns.iter().any(|pattern| pattern.matches(name)) {
                let allowed: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
                let allowed = allowed.join(", ");
                let message = format!(
                    "the {what} {name:?} is not allowed for this publisher; it must be one of: {allowed}"
                );
                return Err(Error::new(ErrorKind::Invalid, "record", message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(allowed: &Allowed, stream: &str, event_type: &str) -> Option<String> {
        let event = NewEvent::of(stream, event_type, "Order", "1", &1).expect("JSON");
        allowed.check(&event).err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_not_listed_is_refused_by_name() {
        let all = Allowed::default();
        assert_eq!(refusal(&all, "market", "TickerReceived"), None, "nothing is listed");
        let streams = Allowed::default().streams(["trade.*", "system"]);
        assert_eq!(refusal(&streams, "trade.event", "OrderFilled"), None);
        assert_eq!(
            refusal(&streams, "market", "TickerReceived").as_deref(),
            Some(
                "record: the stream \"market\" is not allowed for this publisher; it must be one of: trade.*, system"
            )
        );
        let both = streams.types(["Order*"]);
        assert_eq!(refusal(&both, "trade.event", "OrderFilled"), None);
        let sentence = refusal(&both, "trade.event", "TickerReceived").expect("refused");
        assert!(sentence.contains("event type \"TickerReceived\" is not allowed"), "{sentence}");
    }
}
