//! Types with a parser or rules of their own, which their schemas do not tell.

use std::collections::BTreeMap;

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

/// An integer is written as text, for readers that round large ones.
pub(in crate::gate::tests) fn as_text<S: serde::Serializer>(
    number: &u64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&number.to_string())
}

/// And read from both.
pub(in crate::gate::tests) fn number_or_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
    }
    match Either::deserialize(deserializer)? {
        Either::Number(number) => Ok(number),
        Either::Text(text) => text.parse().map_err(D::Error::custom),
    }
}

/// A type that holds another, with a rule.
macro_rules! ruled {
    ($(#[$what:meta])* $name:ident of $inner:ty, $text:literal where $rule:expr) => {
        #[derive(Clone, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = $text, into = $text)]
        $(#[$what])*
        pub(in crate::gate::tests) struct $name($inner);

        impl TryFrom<$inner> for $name {
            type Error = String;

            fn try_from(inner: $inner) -> Result<Self, String> {
                let rule: fn(&$inner) -> bool = $rule;
                if rule(&inner) { Ok(Self(inner)) } else { Err("against the rule".to_owned()) }
            }
        }

        impl From<$name> for $inner {
            fn from(ruled: $name) -> Self {
                ruled.0
            }
        }
    };
}

ruled!(/** At most 100, with room for more. */ WidePercent of u16, "u16" where |number| *number <= 100);
ruled!(/** Only true. */ Accepted of bool, "bool" where |accepted| *accepted);
ruled!(/** Only false. */ Declined of bool, "bool" where |accepted| !*accepted);
ruled!(/** Not empty. */ Filled of Vec<u8>, "Vec<u8>" where |items| !items.is_empty());
ruled!(/** Not empty. */ Priced of BTreeMap<String, u32>, "BTreeMap<String, u32>" where |prices| !prices.is_empty());
ruled!(
    /** At most two, as a list of a fixed capacity. */
    #[schemars(extend("maxItems" = 2))]
    AtMostTwo of Vec<u8>, "Vec<u8>" where |items| items.len() <= 2
);

/// Two or more.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(transparent)]
pub(in crate::gate::tests) struct Several<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Vec::deserialize(deserializer)?;
        if items.len() >= 2 { Ok(Self(items)) } else { Err(D::Error::custom("two or more")) }
    }
}

/// A text, if the field is there at all.
pub(in crate::gate::tests) fn answer<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}
