//! Masking: fields of payloads that are not archived in clear text.

use std::fmt;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Error, ErrorKind, Payload, Recorded, Result};

/// What stands where something was.
const MASKED: &str = "\"***\"";
/// The deepest level that is searched: values below it are masked as a whole.
const DEEPEST: usize = 128;

/// Payload fields that are masked when events are archived.
///
/// A name (`email`) matches fields at any depth. A path (`card.number`) matches exactly there, from the top; `*` matches any
/// name (`*.phone`). Lists are not a level of a path. Write a dot that belongs to a name as `\.`. The value becomes `"***"`,
/// whatever it was, and every other byte of the payload stays.
///
/// A payload that is not JSON can't be masked by field: it becomes empty, and the event gets the header [`Mask::HEADER`]. Headers
/// and keys are never masked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask {
    paths: Vec<Vec<String>>,
}

impl Mask {
    /// The header of an event whose whole payload was removed.
    pub const HEADER: &'static str = "postrider_masked";

    /// Masks the fields with these names and paths.
    pub fn new<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Result<Self> {
        let paths = paths.into_iter().map(|path| parts(path.as_ref())).collect::<Result<_>>()?;
        Ok(Self { paths })
    }

    /// Whether it masks nothing.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Masks an event's payload.
    pub fn apply(&self, event: &mut Recorded) {
        if self.is_empty() {
            return;
        }
        let masked = match &event.payload {
            Payload::Json(text) => self.json(text).map(Payload::Json),
            Payload::Bytes { .. } => None,
        };
        event.payload = masked.unwrap_or_else(|| {
            event.headers.set(Self::HEADER, "payload");
            match &event.payload {
                Payload::Json(_) => Payload::Json("null".to_owned()),
                Payload::Bytes { content_type, .. } => {
                    Payload::Bytes { content_type: content_type.clone(), bytes: Vec::new() }
                }
            }
        });
    }

    /// The text with its fields masked; nothing if it can't be looked into.
    fn json(&self, text: &str) -> Option<String> {
        let value: &RawValue = serde_json::from_str(text).ok()?;
        let mut found = Vec::new();
        let open = self.paths.iter().map(|path| (path.as_slice(), path.as_slice())).collect::<Vec<_>>();
        search(value, &open, DEEPEST, &mut found)?;
        let mut masked = String::with_capacity(text.len());
        let mut rest = 0;
        for value in found {
            // The values are parts of the text, in its order.
            let start = (value.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
            masked.push_str(text.get(rest..start)?);
            masked.push_str(MASKED);
            rest = start + value.len();
        }
        masked.push_str(text.get(rest..)?);
        Some(masked)
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self
            .paths
            .iter()
            .map(|path| path.iter().map(|part| part.replace('.', "\\.")).collect::<Vec<_>>().join("."));
        f.write_str(&paths.collect::<Vec<_>>().join(", "))
    }
}

fn parts(path: &str) -> Result<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut letters = path.chars();
    while let Some(letter) = letters.next() {
        match (letter, parts.last_mut()) {
            ('.', _) => parts.push(String::new()),
            ('\\', Some(part)) => part.push(letters.next().unwrap_or('\\')),
            (_, Some(part)) => part.push(letter),
            (_, None) => {}
        }
    }
    if parts.iter().any(String::is_empty) {
        let message =
            format!("{path:?} is not a field name; write it as \"email\", \"card.number\" or \"*.phone\"");
        return Err(Error::new(ErrorKind::Invalid, "mask", message));
    }
    Ok(parts)
}

/// A path with what is left of it at this level.
type Open<'p> = (&'p [String], &'p [String]);

/// Finds the values to be masked; nothing if it is not JSON after all.
fn search<'t>(value: &'t RawValue, open: &[Open<'_>], depth: usize, found: &mut Vec<&'t str>) -> Option<()> {
    let text = value.get();
    if !text.starts_with(['{', '[']) {
        return Some(());
    }
    if depth == 0 {
        found.push(text);
        return Some(());
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    if text.starts_with('[') {
        for item in deserializer.deserialize_seq(Items).ok()? {
            search(item, open, depth - 1, found)?;
        }
        return Some(());
    }
    for (name, value) in deserializer.deserialize_map(Fields).ok()? {
        let fits = |part: &String| part == "*" || *part == name;
        if open.iter().any(|(_, left)| matches!(left, [last] if fits(last))) {
            found.push(value.get());
            continue;
        }
        let below = open.iter().filter_map(|(path, left)| match (path, left) {
            ([_], _) => Some((*path, *left)),
            (_, [first, rest @ ..]) if fits(first) => Some((*path, rest)),
            _ => None,
        });
        let below: Vec<Open<'_>> = below.collect();
        if !below.is_empty() {
            search(value, &below, depth - 1, found)?;
        }
    }
    Some(())
}

/// The values of a list, unread.
struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(all)
    }
}

/// The fields of an object in their order, those of one name too, with their values unread.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(field) = fields.next_entry()? {
            all.push(field);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::recorded::tests::event;

    fn masked(paths: &[&str], payload: Payload) -> Recorded {
        let mut event = Recorded { payload, ..event("7") };
        Mask::new(paths).expect("good paths").apply(&mut event);
        event
    }

    fn json(paths: &[&str], text: &str) -> String {
        let event = masked(paths, Payload::Json(text.to_owned()));
        assert_eq!(event.headers.get(Mask::HEADER), None, "{text}");
        event.payload.as_json().expect("JSON").to_owned()
    }

    #[test]
    fn a_name_is_masked_at_every_depth_and_a_path_exactly_there() {
        let text = r#"{"email":"a","card":{"number":1,"email":{"x":1}},"number":2,"list":[{"email":[1,2]}]}"#;
        let by_name =
            r#"{"email":"***","card":{"number":1,"email":"***"},"number":2,"list":[{"email":"***"}]}"#;
        assert_eq!(json(&["email"], text), by_name);
        let by_path =
            r#"{"email":"a","card":{"number":"***","email":{"x":1}},"number":2,"list":[{"email":[1,2]}]}"#;
        assert_eq!(json(&["card.number"], text), by_path);
        let any = r#"{"email":"a","card":{"number":1,"email":"***"},"number":2,"list":[{"email":"***"}]}"#;
        assert_eq!(json(&["*.email"], text), any, "a list is no level of a path");
        assert_eq!(json(&["*"], r#"{"a":1,"b":{"c":2}}"#), r#"{"a":"***","b":"***"}"#);
        assert_eq!(
            json(&["a.b"], r#"[{"a":[{"b":1},{"b":2}]},{"b":3}]"#),
            r#"[{"a":[{"b":"***"},{"b":"***"}]},{"b":3}]"#
        );
        assert_eq!(json(&[r"a\.b"], r#"{"a.b":1,"a":{"b":2}}"#), r#"{"a.b":"***","a":{"b":2}}"#);
    }

    #[test]
    fn every_other_byte_stays() {
        let text =
            "{ \"n\": 1.50e+3,\n \"secret\" : null ,\"z\":1, \"a\": 12345678901234567890123, \"z\": 2}";
        assert_eq!(json(&["nothing"], text), text);
        assert_eq!(json(&["secret"], text), text.replace("null", "\"***\""));
        assert_eq!(
            json(&["z"], text),
            text.replace("\"z\":1", "\"z\":\"***\"").replace("\"z\": 2", "\"z\": \"***\"")
        );
        assert_eq!(
            json(&["email"], r#"{"\u0065mail":"a@b"}"#),
            r#"{"\u0065mail":"***"}"#,
            "however it is spelled"
        );
        assert_eq!(json(&["email"], "\"email\""), "\"email\"");
    }

    #[test]
    fn what_cannot_be_looked_into_is_not_kept_in_the_clear() {
        let bytes = Payload::bytes("application/avro", b"secret".to_vec()).expect("bytes");
        let event = masked(&["email"], bytes.clone());
        assert_eq!((event.payload.as_bytes(), event.payload.content_type()), (&b""[..], "application/avro"));
        assert_eq!(event.headers.get(Mask::HEADER), Some("payload"));
        assert_eq!(masked(&[], bytes.clone()).payload, bytes, "without a mask it is kept");
        let odd = masked(&["email"], Payload::Json(r#"{"\ud800":1,"email":2}"#.to_owned()));
        assert_eq!(odd.payload.as_json(), Some("null"));
        let deep = format!("{}{{\"email\":\"secret\"}}{}", "[".repeat(5000), "]".repeat(5000));
        assert!(!json(&["email"], &deep).contains("secret"));
    }

    #[test]
    fn a_path_has_names() {
        for wrong in ["", ".", "a.", ".a", "a..b"] {
            let error = Mask::new([wrong]).expect_err("must be refused").to_string();
            assert!(error.contains("card.number"), "{error}");
        }
    }
}
