//! The payload: JSON text that is kept byte for byte, or bytes with a content type.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{Error, ErrorKind, Limits, Result};

/// The payload of an event.
///
/// Its `Debug` form shows only the size, to keep payloads out of logs.
///
/// ```
/// use postrider_core::Payload;
///
/// # fn main() -> postrider_core::Result<()> {
/// let from_a_value = Payload::json(&vec![1, 2])?;
/// assert_eq!(from_a_value, Payload::json_text("[1,2]")?);
///
/// let avro = Payload::Bytes { content_type: "application/avro".into(), bytes: vec![2, 4] };
/// assert!(!format!("{avro:?}").contains('4'));
/// assert!(Payload::json_text("{not json").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum Payload {
    /// JSON text, kept byte for byte.
    Json(String),
    /// Anything else (Avro, Protobuf, text, …).
    Bytes {
        /// The media type, such as `application/avro`.
        content_type: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

impl Payload {
    /// Serializes a value as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self> {
        let text = serde_json::to_string(value).map_err(|error| {
            Error::new(ErrorKind::Invalid, "record", "can't serialize the event as JSON").caused_by(error)
        })?;
        refuse_nul(&text)?;
        Ok(Self::Json(text))
    }

    /// JSON text from elsewhere, checked and kept byte for byte.
    pub fn json_text(text: impl Into<String>) -> Result<Self> {
        let payload = Self::Json(text.into());
        payload.check()?;
        Ok(payload)
    }

    /// Whether what is called JSON is JSON, without a NUL in it.
    pub(crate) fn check(&self) -> Result<()> {
        let Self::Json(text) = self else { return Ok(()) };
        if let Err(error) = serde_json::from_str::<&RawValue>(text) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "record",
                format!("the payload is not JSON (line {}, column {})", error.line(), error.column()),
            ));
        }
        refuse_nul(text)
    }

    /// JSON text as bytes, which must be UTF-8.
    pub fn json_bytes(bytes: Vec<u8>) -> Result<Self> {
        let text = String::from_utf8(bytes).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                "record",
                format!(
                    "the payload must be UTF-8; the byte at offset {} is invalid",
                    error.utf8_error().valid_up_to()
                ),
            )
        })?;
        Self::json_text(text)
    }

    /// Bytes of another format, with its media type.
    pub fn bytes(content_type: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let content_type = content_type.into();
        Limits::check_text("content type", &content_type, Limits::NAME)?;
        Ok(Self::Bytes { content_type, bytes: bytes.into() })
    }

    /// The payload as bytes, whatever its format.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Json(text) => text.as_bytes(),
            Self::Bytes { bytes, .. } => bytes,
        }
    }

    /// The JSON text, if it is JSON.
    pub fn as_json(&self) -> Option<&str> {
        match self {
            Self::Json(text) => Some(text),
            Self::Bytes { .. } => None,
        }
    }

    /// The media type; `application/json` for JSON.
    pub fn content_type(&self) -> &str {
        match self {
            Self::Json(_) => "application/json",
            Self::Bytes { content_type, .. } => content_type,
        }
    }

    /// Deserializes the JSON. The error shows line and column, never the payload.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T> {
        let Self::Json(text) = self else {
            return Err(Error::new(
                ErrorKind::Invalid,
                "decode",
                format!("the payload is {}, not JSON", self.content_type()),
            ));
        };
        serde_json::from_str(text).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                "decode",
                format!(
                    "the payload does not match its type at line {}, column {}",
                    error.line(),
                    error.column()
                ),
            )
        })
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({}, {} bytes)", self.content_type(), self.as_bytes().len())
    }
}

/// JSON may spell a NUL (`\u0000`); PostgreSQL keeps it in `json` but can't query it as `jsonb`, and text
/// columns elsewhere can't hold it at all. So it is refused at the door, everywhere alike.
fn refuse_nul(json: &str) -> Result<()> {
    if has_nul_escape(json) {
        return Err(Error::new(
            ErrorKind::Invalid,
            "record",
            "the payload must not contain a NUL character (\\u0000)",
        ));
    }
    Ok(())
}

fn has_nul_escape(json: &str) -> bool {
    let bytes = json.as_bytes();
    json.match_indices("\\u0000").any(|(at, _)| {
        // An odd number of backslashes up to here means that this one starts an escape.
        let slashes = bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        slashes % 2 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_text_is_kept_byte_for_byte() {
        let text = "{ \"b\":1,  \"a\" : 1.0e2, \"b\":12345678901234567890123 }";
        assert_eq!(Payload::json_text(text).expect("valid").as_json(), Some(text));
    }

    #[test]
    fn a_nul_in_json_is_refused_and_an_escaped_backslash_is_not() {
        assert!(Payload::json_text(r#"{"a":"\u0000"}"#).is_err());
        assert!(Payload::json_text(r#"{"a":"\\\u0000"}"#).is_err());
        assert!(Payload::json_text(r#"{"a":"\\u0000"}"#).is_ok());
        assert!(Payload::json(&serde_json::json!({"a": "x\0y"})).is_err());
    }

    #[test]
    fn what_is_wrong_with_a_payload_is_said_without_showing_it() {
        let error = Payload::json_text("{\"card\": 4111}x").expect_err("not JSON").to_string();
        assert!(error.contains("line 1, column 15"), "{error}");
        assert!(!error.contains("4111"), "{error}");
        assert!(
            Payload::json_bytes(vec![b'"', 0xff, b'"'])
                .expect_err("not UTF-8")
                .to_string()
                .contains("the byte at offset 1 ")
        );
        assert_eq!(format!("{:?}", Payload::Json("\"secret\"".into())), "Payload(application/json, 8 bytes)");
    }
}
