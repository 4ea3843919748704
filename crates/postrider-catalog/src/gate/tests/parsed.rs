//! Types with a parser or rules of their own, which their schemas do not tell.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// Three capital letters.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub(in crate::gate::tests) struct CurrencyCode(String);

impl TryFrom<String> for CurrencyCode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = text.len() == 3 && text.chars().all(|letter| letter.is_ascii_uppercase());
        if fits { Ok(Self(text)) } else { Err("a code has three capital letters".to_owned()) }
    }
}

impl From<CurrencyCode> for String {
    fn from(code: CurrencyCode) -> Self {
        code.0
    }
}

/// 1 or 2, as `serde_repr` reads and writes it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u8", into = "u8")]
#[schemars(extend("enum" = [1, 2]))]
pub(in crate::gate::tests) struct Level(u8);

impl TryFrom<u8> for Level {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        if matches!(number, 1 | 2) { Ok(Self(number)) } else { Err("a level is 1 or 2".to_owned()) }
    }
}

impl From<Level> for u8 {
    fn from(level: Level) -> Self {
        level.0
    }
}

/// At most 100.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u8", into = "u8")]
pub(in crate::gate::tests) struct Percent(u8);

impl TryFrom<u8> for Percent {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        if number <= 100 { Ok(Self(number)) } else { Err("at most 100".to_owned()) }
    }
}

impl From<Percent> for u8 {
    fn from(percent: Percent) -> Self {
        percent.0
    }
}

/// A text of a form that nobody thinks of.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub(in crate::gate::tests) struct Riddle(String);

impl TryFrom<String> for Riddle {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with("riddle:") { Ok(Self(text)) } else { Err("no riddle".to_owned()) }
    }
}

impl From<Riddle> for String {
    fn from(riddle: Riddle) -> Self {
        riddle.0
    }
}

/// A point in time, as RFC 3339 writes it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub(in crate::gate::tests) struct Moment(String);

impl TryFrom<String> for Moment {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        if shape == "0000-00-00T00:00:00Z" { Ok(Self(text)) } else { Err("no moment".to_owned()) }
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> Self {
        moment.0
    }
}

/// A time of day.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub(in crate::gate::tests) struct Hour(String);

impl TryFrom<String> for Hour {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        if shape == "00:00:00" { Ok(Self(text)) } else { Err("no time of day".to_owned()) }
    }
}

impl From<Hour> for String {
    fn from(hour: Hour) -> Self {
        hour.0
    }
}

/// A uuid that is kept as text.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub(in crate::gate::tests) struct Reference(String);

impl TryFrom<String> for Reference {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if uuid::Uuid::parse_str(&text).is_ok() { Ok(Self(text)) } else { Err("no uuid".to_owned()) }
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.0
    }
}

/// Degrees north of the equator.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
pub(in crate::gate::tests) struct Latitude(f64);

impl TryFrom<f64> for Latitude {
    type Error = String;

    fn try_from(degrees: f64) -> Result<Self, String> {
        if degrees.abs() <= 90.0 { Ok(Self(degrees)) } else { Err("from -90 to 90".to_owned()) }
    }
}

impl From<Latitude> for f64 {
    fn from(latitude: Latitude) -> Self {
        latitude.0
    }
}

/// What a field with `deserialize_with` and without a default reads: it must be there, also as null.
pub(in crate::gate::tests) fn demanded<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    if text.as_deref() == Some("never") { Err(D::Error::custom("never")) } else { Ok(text) }
}

/// Null is an answer: it is not the same as no answer.
#[allow(clippy::option_option)]
pub(in crate::gate::tests) fn answered<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}
