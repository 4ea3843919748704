//! Whether a program with this schema reads a value.

use serde_json::{Map, Value};

use super::object::{Field, Rest};
use super::words::list;
use super::{Array, Kind, Object, Schema, Text};

impl Schema<'_> {
    /// Whether it reads a value.
    pub(crate) fn accepts(self, value: &Value) -> bool {
        self.kinds().iter().any(|kind| kind.accepts(value)) && !self.refused().contains(&value)
    }
}

impl<'s> Schema<'s> {
    /// Why it does not read a value, without a word of the value itself.
    pub(crate) fn refusal(self, value: &Value) -> Option<String> {
        if self.accepts(value) {
            return None;
        }
        let kinds = self.kinds();
        if let (Value::Object(found), [Kind::Object(object)]) = (value, kinds.as_slice()) {
            let missing = object.fields.iter().find(|field| field.required && !object.holds(field, found));
            if let Some(field) = missing {
                return Some(format!("missing field `{}`", field.name));
            }
            if let Some(field) = object.fields.iter().find(|field| object.is_repeated(field, found)) {
                return Some(format!("duplicate field `{}`", field.name));
            }
            let inner = |field: &Field<'s>| Some((field.name, field.schema.refusal(found.get(field.name)?)?));
            if let Some((name, refusal)) = object.fields.iter().find_map(inner) {
                return Some(format!("field {name}: {refusal}"));
            }
            return Some("it has a field that is denied".to_owned());
        }
        Some(format!("expected {}", list(&kinds)))
    }
}

impl Kind<'_> {
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Any, _)
            | (Kind::Null, Value::Null)
            | (Kind::Bool, Value::Bool(_))
            | (Kind::Number, Value::Number(_)) => true,
            (Kind::Integer { least, most }, Value::Number(number)) => match number.as_i128() {
                Some(number) => *least <= number && number <= *most,
                None => number.as_f64().is_some_and(|number| is_beyond_64_bits(number, *least, *most)),
            },
            (Kind::Text(text), Value::String(string)) => text.accepts(string),
            (Kind::Constant(constant), value) => *constant == value,
            (Kind::Array(array), Value::Array(items)) => array.accepts(items),
            (Kind::Object(object), Value::Object(_)) => object.accepts(value),
            (Kind::OtherVariant { tag, known, beside }, Value::Object(fields)) => {
                fields.get(*tag).and_then(Value::as_str).is_some_and(|name| !known.contains(&name))
                    && beside.accepts(value)
            }
            _ => false,
        }
    }
}

/// Whether a number that 64 bits don't hold is in a range that goes further. JSON that was read has it as a float, so only
/// the nearest one is known.
fn is_beyond_64_bits(number: f64, least: i128, most: i128) -> bool {
    #[allow(clippy::cast_precision_loss)]
    let (lowest, highest) = (least as f64, most as f64);
    // This is the first that only a `u128` has, and `i128::MAX` stands for all of those.
    let is_below = number < highest || most == i128::MAX;
    let is_above = most > i128::from(u64::MAX) && number >= 18_446_744_073_709_551_616.0 && is_below;
    let is_under = least < i128::from(i64::MIN) && number < -9_223_372_036_854_775_808.0 && number >= lowest;
    number.fract() == 0.0 && (is_above || is_under)
}

impl Text<'_> {
    /// Whether it reads all that another writes.
    pub(crate) fn reads(self, written: Text<'_>) -> bool {
        match (self, written) {
            (Text::Free, _) | (Text::Format("ip"), Text::Format("ipv4" | "ipv6")) => true,
            (read, written) => read == written,
        }
    }

    pub(crate) fn accepts(self, string: &str) -> bool {
        match self {
            Text::Free => true,
            Text::OneCharacter => string.chars().count() == 1,
            Text::Format(format) => super::sample::of_format(format) == string || looks_like(format, string),
        }
    }
}

/// Whether a string may be of a format. Only the shape is looked at.
fn looks_like(format: &str, string: &str) -> bool {
    let has_date =
        string.len() >= 10 && string.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
    let characters = |allowed: &str| string.chars().all(|c| c.is_ascii_hexdigit() || allowed.contains(c));
    match format {
        "uuid" => matches!(string.len(), 32 | 36 | 38 | 45) && characters("-{}urn:id"),
        "ipv4" => string.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => string.parse::<std::net::Ipv6Addr>().is_ok(),
        "ip" => string.parse::<std::net::IpAddr>().is_ok(),
        "uri" => string.contains(':') && string.starts_with(|c: char| c.is_ascii_alphabetic()),
        "time" => string.contains(':') && string.starts_with(|c: char| c.is_ascii_digit()),
        "date-time" => has_date && string.contains(':'),
        "zoned-date-time" => has_date && string.contains('['),
        "date" => has_date && (string.len() == 10 || string.starts_with(['+', '-'])),
        _ => has_date,
    }
}

impl Array<'_> {
    fn accepts(&self, items: &[Value]) -> bool {
        self.length.is_none_or(|length| items.len() == length)
            && items.len() >= self.least
            && self.most.is_none_or(|most| items.len() <= most)
            && items.iter().enumerate().all(|(index, item)| {
                match self.first.get(index).copied().or(self.items) {
                    Some(schema) => schema.accepts(item),
                    None => true,
                }
            })
    }
}

impl Object<'_> {
    fn holds(&self, field: &Field<'_>, found: &Map<String, Value>) -> bool {
        found.contains_key(field.name) || field.schema.aliases().any(|name| found.contains_key(name))
    }

    /// Whether a field is there under two of its names, which serde refuses.
    fn is_repeated(&self, field: &Field<'_>, found: &Map<String, Value>) -> bool {
        let is_it = |name: &str| self.read_from(name).is_some_and(|read| read.name == field.name);
        field.schema.aliases().next().is_some() && found.keys().filter(|name| is_it(name)).count() > 1
    }

    fn accepts(&self, value: &Value) -> bool {
        let Value::Object(found) = value else { return false };
        (!self.filled || !found.is_empty())
            && self.fields.iter().all(|field| !field.required || self.holds(field, found))
            && !self.fields.iter().any(|field| self.is_repeated(field, found))
            && found.iter().all(|(name, value)| match (self.read_from(name), self.rest) {
                (Some(field), _) => field.schema.is_lost() || field.schema.accepts(value),
                (None, Rest::Ignored) => value.is_null() || !self.without.contains(&name.as_str()),
                (None, Rest::Denied) => false,
                (None, Rest::Each(keys, schema)) => keys.accepts(name) && schema.accepts(value),
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Schema;

    fn reads(format: &str, text: &str) -> bool {
        let document = json!({ "type": "integer", "format": format });
        Schema::new(&document).accepts(&serde_json::from_str::<Value>(text).expect("JSON"))
    }

    #[test]
    fn an_integer_beyond_64_bits_is_read_by_one_of_128_bits_alone() {
        let beyond = "18446744073709551616";
        assert!(
            reads("uint128", beyond) && reads("int128", beyond) && reads("int128", "-9223372036854775809999")
        );
        assert!(
            !reads("uint64", beyond) && !reads("int64", beyond) && !reads("uint128", "-18446744073709551616")
        );
        // Only one without a sign goes beyond 2^127.
        let highest = u128::MAX.to_string();
        assert!(reads("uint128", &highest) && !reads("int128", &highest));
        assert!(!reads("uint128", "1.0") && !reads("uint128", "1.5"));
    }
}
