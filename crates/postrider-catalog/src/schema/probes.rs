//! The values that a type is asked about, to find out whether it has a parser or rules of its own.

use serde_json::{Value, json};

use super::{Kind, PROBED, Schema, Text};

/// Texts that a type without a parser reads, all of them. Hardly any parser does.
pub(crate) const ANY: [&str; 4] = ["text", "", "\u{1}", "A b"];

/// Texts that parsers read. New ones belong at the end: the first that a type reads is its sample, also in old locks.
const PARSED: [&str; 34] = [
    "a",
    "A",
    "abc",
    "ABC",
    "0",
    "1",
    "-1",
    "1.5",
    "1.2.3",
    "true",
    "00ff",
    "#00ff00",
    "YWJj",
    "abc.example.com",
    "abc@example.com",
    "https://example.com/",
    "/abc",
    "00000000-0000-4000-8000-000000000000",
    "2026-01-01",
    "12:00:00",
    "2026-01-01T12:00:00",
    "2026-01-01T12:00:00Z",
    "2026-01-01 12:00:00",
    "2026-01-01 12:00:00.0 +00:00:00",
    "2026-01-01T12:00:00+00:00[UTC]",
    "PT1H",
    "P1D",
    "1h",
    "192.0.2.1",
    "2001:db8::1",
    "192.0.2.1:80",
    "[2001:db8::1]:80",
    "192.0.2.0/24",
    "en-US",
];

/// All texts that are tried.
pub(crate) fn texts() -> impl Iterator<Item = &'static str> {
    ANY.into_iter().chain(PARSED)
}

/// The numbers that a rule of a type may refuse: a share, a percentage, a coordinate, an amount.
pub(crate) fn numbers() -> impl Iterator<Item = Value> {
    let whole = [0_i64, 1, -1, 2, 100, 1_000_000_000, -1_000_000_000];
    std::iter::once(json!(1.5)).chain(whole.map(Value::from))
}

/// The integers that a rule of a type may refuse, among them the first that each type of Rust does not hold. New ones belong at the
/// end.
const INTEGERS: [i128; 33] = [
    1,
    0,
    -1,
    2,
    10,
    100,
    1_000,
    1_000_000_000,
    -1_000_000_000,
    -10,
    -100,
    1_000_000,
    1_000_000_000_000,
    0x7f,
    0x80,
    -0x80,
    -0x81,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    -0x8000,
    -0x8001,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    -0x8000_0000,
    -0x8000_0001,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
];

/// All integers that are tried.
pub(crate) fn integers() -> impl Iterator<Item = i128> {
    INTEGERS.into_iter()
}

/// All values that are tried.
pub(crate) fn values() -> impl Iterator<Item = Value> {
    let integers = [1_i64, 0, -1, 2, 10, 100, 1000, 1_000_000_000];
    texts().map(Value::from).chain(integers.map(Value::from)).chain([json!(true), json!(false)])
}

/// How many of each are tried.
pub(crate) fn counts() -> Value {
    json!([texts().count(), integers().count()])
}

/// How many of the texts a type was asked about that this is the `x-probed` of: all unless it says otherwise.
pub(super) fn asked_texts(probed: Option<&Value>) -> usize {
    count(probed, 0)
}

fn count(probed: Option<&Value>, index: usize) -> usize {
    let count = probed.and_then(|counts| counts.get(index)?.as_u64());
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX)
}

/// Whether a type was asked about a value. A value that is no probe belongs to its schema.
fn was_asked(probed: Option<&Value>, value: &Value) -> bool {
    let (place, asked) = match value {
        Value::String(text) => (texts().position(|known| known == text), count(probed, 0)),
        Value::Number(number) => {
            (integers().position(|known| number.as_i128() == Some(known)), count(probed, 1))
        }
        _ => return true,
    };
    place.is_none_or(|place| place < asked)
}

impl<'s> Schema<'s> {
    /// A value that the type reads: this one, or the first that is tried and that its schema allows, if it refuses this one.
    pub(crate) fn unrefused(self, sample: Value, kinds: &[Kind<'s>]) -> Value {
        let refused = self.refused();
        if !refused.contains(&&sample) {
            return sample;
        }
        let allowed =
            |value: &Value| kinds.iter().any(|kind| kind.writes(value)) && !refused.contains(&value);
        values().find(allowed).unwrap_or(sample)
    }

    /// Whether it surely writes a value: where a schema tells a shape only, it is the one value that is known.
    pub(crate) fn writes(self, value: &Value) -> bool {
        // What a newer list of probes has, an older type was not asked about.
        let is_known = was_asked(self.root.get(PROBED), value);
        is_known && !self.refused().contains(&value) && self.kinds().iter().any(|kind| kind.writes(value))
    }
}

impl Kind<'_> {
    fn writes(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Text(Text::Format(format)), Value::String(text)) => {
                super::sample::of_format(format) == text
            }
            _ => self.accepts(value),
        }
    }
}
