//! A counterexample as a program writes it.

use std::io;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::ser::Formatter;
use serde_json::value::RawValue;

/// JSON in one line, in which an integer beyond 64 bits is written with all its digits. A [`Value`] holds it as a float.
pub(crate) fn text(value: &Value) -> String {
    let mut text = Vec::new();
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Digits));
    // A value has nothing that JSON can't write.
    written.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_default()
}

pub(super) fn serialize<S: Serializer>(example: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    let raw = example.as_ref().map(|example| RawValue::from_string(text(example)));
    raw.transpose().map_err(serde::ser::Error::custom)?.serialize(serializer)
}

struct Digits;

impl Formatter for Digits {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        if value.fract() == 0.0 { write!(writer, "{value:.0}") } else { write!(writer, "{value}") }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn an_integer_beyond_64_bits_has_all_its_digits() {
        let example = json!({ "amount": 18_446_744_073_709_551_616.0, "rate": 1.5, "count": -3 });
        assert_eq!(super::text(&example), r#"{"amount":18446744073709551616,"count":-3,"rate":1.5}"#);
    }
}
