//! What every message says besides its payload.

use uuid::Uuid;

/// Whose message it is, what it is about, and what it follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The owner of the account.
    pub owner: String,
    /// The strategy, such as `EXTREME_FLIP`.
    pub strategy: String,
    /// The market, such as `KRW-BTC`.
    pub market: String,
    /// The trace: a UUID or a W3C `traceparent`.
    pub trace: String,
    /// The message that caused it, if one did.
    pub cause: Option<Uuid>,
}

impl About {
    /// The same, as what follows from a message.
    #[must_use]
    pub fn caused_by(&self, event_id: Uuid) -> Self {
        Self { cause: Some(event_id), ..self.clone() }
    }
}

/// A new W3C trace.
pub fn new_trace() -> String {
    let span = Uuid::new_v4().simple().to_string();
    format!("00-{}-{}-01", Uuid::new_v4().simple(), &span[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_trace_has_the_form_of_the_w3c() {
        let trace = new_trace();
        let lengths: Vec<usize> = trace.split('-').map(str::len).collect();
        assert_eq!(lengths, [2, 32, 16, 2], "{trace}");
        assert_ne!(trace, new_trace());
    }
}
