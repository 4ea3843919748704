//! The objects that a schema allows: structs, maps, and variants of enums.

use serde_json::{Map, Value};

use super::sample::of_format;
use super::{KEYS, Schema, Text, integers, text};

/// Which objects.
#[derive(Debug, Clone)]
pub(crate) struct Object<'s> {
    /// The fields that it names.
    pub(crate) fields: Vec<Field<'s>>,
    /// All other fields.
    pub(crate) rest: Rest<'s>,
}

/// A field of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'s> {
    pub(crate) name: &'s str,
    pub(crate) schema: Schema<'s>,
    pub(crate) required: bool,
}

/// The fields that an object does not name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rest<'s> {
    /// A struct: it writes none, and ignores them when it reads.
    Ignored,
    /// `deny_unknown_fields`: it refuses them.
    Denied,
    /// A map: each has such a key, and this schema.
    Each(Keys<'s>, Schema<'s>),
}

/// The keys of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys<'s> {
    Text(Text<'s>),
    /// Integers, written as text.
    Integer {
        least: i128,
        most: i128,
    },
}

impl<'s> Keys<'s> {
    /// The keys that a schema allows.
    pub(crate) fn of(schema: &'s Value) -> Option<Self> {
        let node = schema.as_object()?;
        match node.get("type")?.as_str()? {
            "string" => Some(Self::Text(text(node))),
            "integer" => {
                integers(node).first().map(|(least, most)| Self::Integer { least: *least, most: *most })
            }
            _ => None,
        }
    }

    /// The keys that a pattern allows: schemars has one for integers with a sign, and one for those without.
    fn of_pattern(pattern: &str) -> Self {
        match pattern {
            r"^\d+$" => Self::Integer { least: 0, most: i128::MAX },
            r"^-?\d+$" => Self::Integer { least: i128::MIN, most: i128::MAX },
            _ => Self::Text(Text::Free),
        }
    }

    pub(crate) fn accepts(self, key: &str) -> bool {
        match self {
            Self::Text(text) => text.accepts(key),
            Self::Integer { least, most } => {
                key.parse::<i128>().is_ok_and(|number| least <= number && number <= most)
            }
        }
    }

    /// Such a key.
    pub(crate) fn sample(self) -> String {
        match self {
            Self::Text(Text::Free) => "key".into(),
            Self::Text(Text::OneCharacter) => "c".into(),
            Self::Text(Text::Format(format)) => of_format(format).into(),
            Self::Integer { least, most } => 1.clamp(least, most).to_string(),
        }
    }

    /// A key that one map writes and another does not read.
    pub(crate) fn unread_by(self, reader: Self) -> Option<String> {
        match (self, reader) {
            (Self::Integer { least, most }, Self::Integer { least: lowest, most: highest }) => {
                let beyond = if most > highest { highest.checked_add(1) } else { lowest.checked_sub(1) };
                beyond.filter(|key| least <= *key && *key <= most).map(|key| key.to_string())
            }
            (Self::Text(text), Self::Text(reader)) if reader.reads(text) => None,
            (_, Self::Text(Text::Free)) => None,
            (Self::Text(Text::Format("ip")), Self::Text(Text::Format("ipv4"))) => {
                Some(of_format("ipv6").into())
            }
            _ => Some(self.sample()),
        }
    }

    /// In words.
    pub(crate) fn named(self) -> String {
        match self {
            Self::Text(Text::Free) => "any text".into(),
            Self::Text(Text::OneCharacter) => "single characters".into(),
            Self::Text(Text::Format(format)) => format!("{format} strings"),
            Self::Integer { least: i128::MIN, .. } => "integers".into(),
            Self::Integer { most: i128::MAX, least } => format!("integers from {least} on"),
            Self::Integer { least, most } => format!("integers from {least} to {most}"),
        }
    }
}

impl<'s> Object<'s> {
    pub(crate) fn of(place: Schema<'s>, node: &'s Map<String, Value>) -> Self {
        let required: Vec<&str> = node
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let fields =
            node.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, schema)| {
                Field { name, schema: place.at(schema), required: required.contains(&name.as_str()) }
            });
        // A map with numbers as keys is written down by a pattern.
        let keyed = node
            .get("patternProperties")
            .and_then(Value::as_object)
            .and_then(|patterns| patterns.iter().next());
        let marked = node.get(KEYS).and_then(Keys::of);
        let others = node.get("additionalProperties").or_else(|| node.get("unevaluatedProperties"));
        let rest = match (keyed, others) {
            (Some((pattern, schema)), _) => {
                Rest::Each(marked.unwrap_or_else(|| Keys::of_pattern(pattern)), place.at(schema))
            }
            (None, None) => Rest::Ignored,
            (None, Some(Value::Bool(false))) => Rest::Denied,
            (None, Some(schema)) => Rest::Each(marked.unwrap_or(Keys::Text(Text::Free)), place.at(schema)),
        };
        Self { fields: fields.collect(), rest }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field<'s>> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field that is read from this name: the one that has it, or an alias.
    pub(crate) fn read_from(&self, name: &str) -> Option<&Field<'s>> {
        self.field(name)
            .or_else(|| self.fields.iter().find(|field| field.schema.aliases().any(|alias| alias == name)))
    }

    /// The variant that an object stands for: a field with one constant, or the only field of an object that has no others.
    pub(crate) fn variant(&self) -> Option<Variant<'s>> {
        let constant = |field: &&Field<'s>| field.required && single(field.schema).is_some();
        if let Some(field) = self.fields.iter().find(constant) {
            return single(field.schema).map(|value| Variant { tag: Some(field.name), name: value });
        }
        match (&*self.fields, self.rest) {
            ([Field { name, required: true, .. }], Rest::Denied) => Some(Variant { tag: None, name }),
            _ => None,
        }
    }
}

impl<'s> Rest<'s> {
    /// What a map writes under any key, and which keys.
    pub(crate) fn written(self) -> Option<(Keys<'s>, Schema<'s>)> {
        match self {
            Rest::Each(keys, schema) => Some((keys, schema)),
            Rest::Ignored | Rest::Denied => None,
        }
    }
}

/// The name of an enum's variant, and the field that holds it, if one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variant<'s> {
    pub(crate) tag: Option<&'s str>,
    pub(crate) name: &'s str,
}

/// The only string that a schema allows.
fn single(schema: Schema<'_>) -> Option<&str> {
    let constant = schema.get("const").and_then(Value::as_str);
    constant.or_else(|| match schema.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.as_str(),
        _ => None,
    })
}
