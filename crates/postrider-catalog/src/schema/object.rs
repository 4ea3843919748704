//! The objects that a schema allows: structs, maps, and variants of enums.

use serde_json::{Map, Value};

use super::sample::of_format;
use super::{KEYS, NULL, PROBED, REFUSED, Schema, Text, WITHOUT, integers, probes, text};

/// Which objects.
#[derive(Debug, Clone)]
pub(crate) struct Object<'s> {
    /// The fields that it names.
    pub(crate) fields: Vec<Field<'s>>,
    /// All other fields.
    pub(crate) rest: Rest<'s>,
    /// The fields that it refuses unless they are null, although it ignores others.
    pub(crate) without: Vec<&'s str>,
    /// Whether it is a map that is found to have an entry at least.
    pub(crate) filled: bool,
}

/// A field of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'s> {
    pub(crate) name: &'s str,
    pub(crate) schema: Schema<'s>,
    pub(crate) required: bool,
}

impl Field<'_> {
    /// Whether null may be written: always, unless it is an option that is left out where it is empty.
    pub(crate) fn may_be_written_as_null(&self) -> bool {
        self.required || self.schema.get(NULL) == Some(&Value::Bool(true))
    }
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
    /// The names of an enum.
    Names(&'s [Value]),
    /// What a type with a parser reads: not these of the texts that it was asked about.
    Parsed {
        refused: &'s [Value],
        asked: usize,
    },
}

impl<'s> Keys<'s> {
    /// The keys that a schema allows.
    pub(crate) fn of(schema: &'s Value, root: &Value) -> Option<Self> {
        let node = schema.as_object()?;
        let list = |keyword| node.get(keyword).and_then(Value::as_array).map(Vec::as_slice);
        if let Some(names) = list("enum") {
            return Some(Self::Names(names));
        }
        if let Some(refused) = list(REFUSED) {
            return Some(Self::Parsed { refused, asked: probes::asked_texts(root.get(PROBED)) });
        }
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
            Self::Names(names) => names.iter().any(|name| name == key),
            Self::Parsed { refused, .. } => !refused.iter().any(|text| text == key),
        }
    }

    /// Such a key, if one is known.
    pub(crate) fn sample(self) -> Option<String> {
        Some(match self {
            Self::Text(Text::Free) => "key".into(),
            Self::Text(Text::OneCharacter) => "c".into(),
            Self::Text(Text::Format(format)) => of_format(format).into(),
            Self::Integer { least, most } => 1.clamp(least, most).to_string(),
            Self::Names(names) => names.iter().find_map(Value::as_str)?.into(),
            Self::Parsed { .. } => self.parsed().next()?.into(),
        })
    }

    /// The texts that it was asked about and takes.
    fn parsed(self) -> impl Iterator<Item = &'static str> {
        let asked = if let Self::Parsed { asked, .. } = self { asked } else { usize::MAX };
        probes::texts().take(asked).filter(move |text| self.accepts(text))
    }

    /// Keys that it surely writes.
    pub(crate) fn candidates(self) -> Vec<String> {
        match self {
            Self::Names(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Self::Text(Text::Free | Text::OneCharacter) | Self::Parsed { .. } => {
                let tried = self.parsed().map(str::to_owned);
                self.sample().into_iter().chain(tried).collect()
            }
            Self::Text(Text::Format(_)) => self.sample().into_iter().collect(),
            Self::Integer { least, most } => {
                // Without the format of a type it is not known how far it goes.
                let ends = [least, most].into_iter().filter(|end| ![i128::MIN, i128::MAX].contains(end));
                let near = [1, 10, 0, -1].into_iter().filter(|number| (least..=most).contains(number));
                near.chain(ends).map(|number| number.to_string()).collect()
            }
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
            (Self::Text(_), Self::Text(_)) => self.sample(),
            (Self::Parsed { .. }, Self::Parsed { .. }) if !self.is_unsure(reader) => None,
            (Self::Parsed { .. }, _) if self.sample().is_none() => Some("key".into()),
            _ => self.candidates().into_iter().find(|key| !reader.accepts(key)),
        }
    }

    /// Whether all that is known to be written is read, and more may be written: a type parses the keys.
    pub(crate) fn is_unsure(self, reader: Self) -> bool {
        match (self, reader) {
            (Self::Parsed { asked, .. }, Self::Parsed { asked: also, .. }) => {
                probes::texts().take(asked.min(also)).any(|text| self.accepts(text) != reader.accepts(text))
            }
            (Self::Parsed { .. }, reader) => reader != Self::Text(Text::Free),
            _ => false,
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
            Self::Names(names) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                names.join(" or ")
            }
            Self::Parsed { .. } => "what its type parses".into(),
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
        let marked = node.get(KEYS).and_then(|keys| Keys::of(keys, place.root));
        let others = node.get("additionalProperties").or_else(|| node.get("unevaluatedProperties"));
        let rest = match (keyed, others) {
            (Some((pattern, schema)), _) => {
                Rest::Each(marked.unwrap_or_else(|| Keys::of_pattern(pattern)), place.at(schema))
            }
            (None, None) => Rest::Ignored,
            (None, Some(Value::Bool(false))) => Rest::Denied,
            (None, Some(schema)) => Rest::Each(marked.unwrap_or(Keys::Text(Text::Free)), place.at(schema)),
        };
        let refused = node.get(REFUSED).and_then(Value::as_array);
        let filled = refused.is_some_and(|refused| refused.contains(&Value::Object(Map::new())));
        Self { fields: fields.collect(), rest, without: without(node.get(WITHOUT)), filled }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field<'s>> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field that is read from this name: the one that has it, or an alias.
    pub(crate) fn read_from(&self, name: &str) -> Option<&Field<'s>> {
        self.field(name)
            .or_else(|| self.fields.iter().find(|field| field.schema.aliases().any(|alias| alias == name)))
    }

    /// The only string that a field holds, which is always there: the tag of a variant.
    pub(crate) fn constant(&self, name: &str) -> Option<&'s str> {
        self.field(name).filter(|field| field.required).and_then(|field| single(field.schema))
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

/// The names in a list of fields that a variant refuses.
pub(crate) fn without(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The only string that a schema allows.
fn single(schema: Schema<'_>) -> Option<&str> {
    let constant = schema.get("const").and_then(Value::as_str);
    constant.or_else(|| match schema.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.as_str(),
        _ => None,
    })
}
