//! Headers: the reserved ones, typed, and the application's own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use serde_json::Value;
use uuid::Uuid;

/// The headers of an event: text by name.
///
/// Reserved headers have their own accessors; all other names belong to the application. Where somebody outside chooses names,
/// [`set_own`](Headers::set_own) refuses those that have a meaning. Headers that were read from a store are parsed only when they are used.
///
/// ```
/// use postrider_core::Headers;
///
/// let mut headers = Headers::new().with("channel", "web");
/// headers.set_tenant("acme");
///
/// assert_eq!(headers.tenant(), Some("acme"));
/// assert_eq!(headers.get("channel"), Some("web"));
/// assert_eq!(headers.schema_version(), 1);
/// ```
#[derive(Clone)]
pub struct Headers {
    raw: String,
    parsed: OnceLock<BTreeMap<String, String>>,
}

/// How many headers are read without a map.
const FEW: usize = 64;

pub(super) const SOURCE: &str = "source";
pub(super) const SCHEMA_VERSION: &str = "schema_version";
pub(super) const TRACEPARENT: &str = "traceparent";
pub(super) const CORRELATION_ID: &str = "correlation_id";
pub(super) const CAUSATION_ID: &str = "causation_id";
pub(super) const TENANT: &str = "tenant";

impl Headers {
    /// No headers.
    pub fn new() -> Self {
        Self::from_map(BTreeMap::new())
    }

    /// Headers from a store: the text of a JSON object.
    ///
    /// A value that is not text becomes its JSON; text that is not a JSON object has no headers.
    pub fn from_json(raw: String) -> Self {
        Self { raw, parsed: OnceLock::new() }
    }

    fn from_map(map: BTreeMap<String, String>) -> Self {
        Self { raw: String::new(), parsed: OnceLock::from(map) }
    }

    fn map(&self) -> &BTreeMap<String, String> {
        self.parsed.get_or_init(|| match serde_json::from_str::<BTreeMap<String, Value>>(&self.raw) {
            Ok(values) => values
                .into_iter()
                .map(|(name, value)| match value {
                    Value::String(text) => (name, text),
                    other => (name, other.to_string()),
                })
                .collect(),
            Err(_) => BTreeMap::new(),
        })
    }

    /// The headers as the text of a JSON object.
    pub fn to_json(&self) -> String {
        if self.raw.is_empty() {
            let map = self.map();
            serde_json::to_string(map).unwrap_or_else(|_| "{}".to_owned())
        } else {
            self.raw.clone()
        }
    }

    /// About how many bytes they take as JSON.
    pub(crate) fn size(&self) -> usize {
        if self.raw.is_empty() {
            // Quotes, a colon and a comma each.
            self.map().iter().map(|(name, value)| name.len() + value.len() + 6).sum()
        } else {
            self.raw.len()
        }
    }

    /// The value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        if self.parsed.get().is_none()
            && let Some(found) = self.peek(name)
        {
            return found;
        }
        self.map().get(name).map(String::as_str)
    }

    /// The value of a header without parsing the others, where the text is plain enough to tell: nothing nested, nothing
    /// escaped. Most are, and a relay looks at two headers of every event.
    fn peek(&self, name: &str) -> Option<Option<&str>> {
        let inner = self.raw.strip_prefix('{')?.strip_suffix('}')?;
        if name.is_empty() || inner.bytes().any(|byte| matches!(byte, b'\\' | b'{' | b'[')) {
            return None;
        }
        // What is between quotes is a name or the value behind one; what is not, everything else.
        let (mut pieces, mut found) = (inner.split('"').skip(1), None);
        while let Some(each) = pieces.next() {
            let is_text = pieces.next()?.trim() == ":";
            let value = if is_text { Some(pieces.next()?) } else { None };
            if each == name {
                // Of two with one name the last counts, and what is not text is shown as its JSON.
                if found.is_some() || value.is_none() {
                    return None;
                }
                found = value;
            }
            if is_text {
                pieces.next();
            }
        }
        Some(found)
    }

    /// Passes each header to `take`, by name. Simple headers are parsed without keeping the result.
    pub fn each<'a>(&'a self, mut take: impl FnMut(&'a str, &'a str)) {
        match self.parsed.get().is_none().then(|| self.plain()).flatten() {
            Some(mut pairs) => {
                pairs.sort_unstable();
                pairs.into_iter().for_each(|(name, value)| take(name, value));
            }
            None => self.iter().for_each(|(name, value)| take(name, value)),
        }
    }

    /// All headers, where they are plain text without escapes, each name once.
    fn plain(&self) -> Option<Vec<(&str, &str)>> {
        let mut rest = self.raw.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        if rest.bytes().any(|byte| byte == b'\\' || byte < b' ') {
            return None;
        }
        let mut pairs: Vec<(&str, &str)> = Vec::with_capacity(8);
        while !rest.is_empty() {
            let (name, after) = rest.strip_prefix('"')?.split_once('"')?;
            let (value, after) =
                after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?.split_once('"')?;
            // With many, comparing each with each costs more than a map does.
            if pairs.len() == FEW || pairs.iter().any(|(known, _)| *known == name) {
                return None;
            }
            pairs.push((name, value));
            rest = after.trim_start();
            match rest.strip_prefix(',') {
                Some(more) if more.trim_start().starts_with('"') => rest = more.trim_start(),
                None if rest.is_empty() => {}
                _ => return None,
            }
        }
        Some(pairs)
    }

    /// Sets a header.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.map();
        let mut map = self.parsed.take().unwrap_or_default();
        map.insert(name.into(), value.into());
        *self = Self::from_map(map);
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(name, value);
        self
    }

    /// All headers, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.map().iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The application that recorded the event.
    pub fn source(&self) -> Option<&str> {
        self.get(SOURCE)
    }

    /// Sets the application that recorded the event.
    pub fn set_source(&mut self, source: impl Into<String>) {
        self.set(SOURCE, source);
    }

    /// The version of the payload's schema. Default: 1.
    pub fn schema_version(&self) -> u32 {
        self.get(SCHEMA_VERSION).and_then(|version| version.parse().ok()).unwrap_or(1)
    }

    /// Sets the version of the payload's schema.
    pub fn set_schema_version(&mut self, version: u32) {
        self.set(SCHEMA_VERSION, version.to_string());
    }

    /// The W3C trace context (or another trace id) of the transaction that recorded the event.
    pub fn traceparent(&self) -> Option<&str> {
        self.get(TRACEPARENT)
    }

    /// Sets the trace context.
    pub fn set_traceparent(&mut self, traceparent: impl Into<String>) {
        self.set(TRACEPARENT, traceparent);
    }

    /// The id that all events of a chain share: the id of its first event.
    pub fn correlation_id(&self) -> Option<&str> {
        self.get(CORRELATION_ID)
    }

    /// Sets the id that all events of a chain share.
    pub fn set_correlation_id(&mut self, id: impl Into<String>) {
        self.set(CORRELATION_ID, id);
    }

    /// The event that caused this one.
    pub fn causation_id(&self) -> Option<Uuid> {
        self.get(CAUSATION_ID).and_then(|id| id.parse().ok())
    }

    /// Sets the event that caused this one.
    pub fn set_causation_id(&mut self, id: Uuid) {
        self.set(CAUSATION_ID, id.to_string());
    }

    /// The tenant that the event belongs to.
    pub fn tenant(&self) -> Option<&str> {
        self.get(TENANT)
    }

    /// Sets the tenant that the event belongs to.
    pub fn set_tenant(&mut self, tenant: impl Into<String>) {
        self.set(TENANT, tenant);
    }
}

impl Default for Headers {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        self.map() == other.map()
    }
}

impl Eq for Headers {}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.map()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_headers_are_typed_and_the_applications_own_stand_beside_them() {
        let cause = Uuid::now_v7();
        let mut headers = Headers::new().with("market", "KRW-BTC");
        headers.set_schema_version(3);
        headers.set_causation_id(cause);
        let read = Headers::from_json(headers.to_json());
        assert_eq!(read, headers);
        assert_eq!((read.schema_version(), read.causation_id()), (3, Some(cause)));
        assert_eq!(read.get("market"), Some("KRW-BTC"));
    }

    #[test]
    fn a_header_that_is_not_text_is_shown_as_its_json() {
        let headers = Headers::from_json(r#"{"schema_version": 2, "retry": true}"#.into());
        assert_eq!((headers.schema_version(), headers.get("retry")), (2, Some("true")));
    }

    #[test]
    fn changing_headers_from_a_store_keeps_the_others() {
        let mut headers = Headers::from_json(r#"{"a":"1"}"#.into());
        headers.set_tenant("acme");
        assert_eq!(headers.to_json(), r#"{"a":"1","tenant":"acme"}"#);
    }

    #[test]
    fn what_is_no_json_has_no_headers() {
        for raw in ["", r#"{"a":"1",}"#, r#"{"a":"1""b":"2"}"#, r#"{,"a":"1"}"#, "{\"a\":\"line\nbreak\"}"] {
            Headers::from_json(raw.to_owned()).each(|name, _| panic!("{name} in {raw}"));
        }
    }

    #[test]
    fn a_header_is_found_without_parsing_as_with_it() {
        for raw in [
            r#"{}"#,
            r#"{"a":"1"}"#,
            r#"{"a":"1","traceparent":"00-x-y-01"}"#,
            r#"{"a": "1", "traceparent": "t"}"#,
            r#"{"note":"traceparent","traceparent":"t"}"#,
            r#"{"note":"my traceparent","a":"1"}"#,
            r#"{"x":{"traceparent":"inner"}}"#,
            r#"{"x":["traceparent"],"traceparent":"t"}"#,
            r#"{"quoted":"\"traceparent\":\"no\"","traceparent":"t"}"#,
            r#"{"traceparent":7}"#,
            r#"{"traceparent":""}"#,
            r#"{"xtraceparent":"no"}"#,
            r#"not json"#,
            r#" { "b" : "2" , "a":"1" } "#,
            r#"{"a":"1","a":"2"}"#,
        ] {
            let (lazy, eager) = (Headers::from_json(raw.to_owned()), Headers::from_json(raw.to_owned()));
            eager.map();
            for name in ["traceparent", "a", "missing", ""] {
                assert_eq!(
                    lazy.peek(name).unwrap_or_else(|| eager.get(name)),
                    eager.get(name),
                    "{name} in {raw}"
                );
            }
            assert_eq!(lazy.get("traceparent"), eager.get("traceparent"), "{raw}");
            let (mut given, kept): (Vec<_>, Vec<_>) = (Vec::new(), eager.iter().collect());
            Headers::from_json(raw.to_owned())
                .each(|name, value| given.push((name.to_owned(), value.to_owned())));
            assert!(given.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(kept), "{raw}");
        }
    }
}
