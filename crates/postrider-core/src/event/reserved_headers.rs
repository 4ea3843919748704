//! Which names of headers are taken, for a publisher that lets others choose some.

use super::cloud_event::RESERVED;
use super::headers::{CAUSATION_ID, CORRELATION_ID, SCHEMA_VERSION, SOURCE, TENANT, TRACEPARENT};
use crate::{Error, ErrorKind, Headers, Limits, Result};

/// The headers that have a meaning.
const TYPED: [&str; 6] = [SOURCE, SCHEMA_VERSION, TRACEPARENT, CORRELATION_ID, CAUSATION_ID, TENANT];

/// What sinks write beside the headers of an event, besides the attributes of CloudEvents.
const WRITTEN: [&str; 4] = ["event_id", "event_type", "occurred_at", "content-type"];

impl Headers {
    /// Whether a name has a meaning for Postrider or a sink: a typed header such as `schema_version`, an attribute of CloudEvents, or a name
    /// that begins with `ce_` or `ce-`. The application's own headers have other names. Upper and lower case are the same.
    pub fn is_reserved(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let is_taken = [&TYPED[..], &WRITTEN, &RESERVED].into_iter().flatten().any(|taken| *taken == name);
        is_taken || name.starts_with("ce_") || name.starts_with("ce-")
    }

    /// Sets a header whose name comes from outside, such as from a client's request. [`set`](Headers::set) takes any name; with it, a
    /// client could say that the payload has another schema version, and consumers would wait for a newer program.
    ///
    /// *On failure*: [`Invalid`](ErrorKind::Invalid) if the name [is reserved](Headers::is_reserved), empty or longer than 200 bytes, or
    /// if the name or the value has a NUL character. Nothing is set then.
    ///
    /// ```
    /// use postrider_core::Headers;
    ///
    /// let mut headers = Headers::new();
    /// headers.set_own("channel", "mobile").unwrap();
    /// assert!(headers.set_own("schema_version", "2").is_err());
    /// ```
    pub fn set_own(&mut self, name: impl Into<String>, value: impl Into<String>) -> Result<()> {
        let (name, value) = (name.into(), value.into());
        Limits::check_text("name of a header", &name, Limits::NAME)?;
        let refused = |message: String| Err(Error::new(ErrorKind::Invalid, "record", message));
        if Self::is_reserved(&name) {
            return refused(format!("the header {name} is reserved; choose another name"));
        }
        if value.contains('\0') {
            return refused(format!("the header {name} must not contain a NUL character"));
        }
        self.set(name, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_can_be_none_that_has_a_meaning() {
        let mut headers = Headers::new();
        headers.set_source("/service");
        let all = TYPED.iter().chain(&WRITTEN).chain(&RESERVED);
        for name in all.copied().chain(["ce_anything", "ce-type", "Schema_Version", "TraceParent"]) {
            assert!(Headers::is_reserved(name), "{name}");
            let error = headers.set_own(name, "forged").expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Invalid, "{name}");
            assert!(error.message().contains("is reserved; choose another name"), "{error}");
        }
        for (name, value, says) in [
            ("", "x", "must not be empty"),
            ("a\0b", "x", "must not contain a NUL"),
            ("channel", "a\0b", "the header channel must not contain a NUL character"),
        ] {
            let error = headers.set_own(name, value).expect_err(says);
            assert!(error.message().contains(says), "{error}");
        }
        let long = "n".repeat(Limits::NAME + 1);
        assert!(headers.set_own(long, "x").expect_err("too long").message().contains("201 bytes"));
        headers.set_own("channel", "mobile").expect("it is the application's own");
        headers.set_own("center", "x").expect("it only begins alike");
        assert_eq!(headers.to_json(), r#"{"center":"x","channel":"mobile","source":"/service"}"#);
    }
}
