//! The objects that a schema allows: structs, maps, and variants of enums.

use serde_json::{Map, Value};

use super::Schema;

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
    /// A map: each has this schema.
    Each(Schema<'s>),
    /// A map whose keys are numbers: each value has this schema.
    Numbered(Schema<'s>),
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
            .and_then(|patterns| patterns.values().next());
        let rest =
            match (keyed, node.get("additionalProperties").or_else(|| node.get("unevaluatedProperties"))) {
                (Some(schema), _) => Rest::Numbered(place.at(schema)),
                (None, None) => Rest::Ignored,
                (None, Some(Value::Bool(false))) => Rest::Denied,
                (None, Some(schema)) => Rest::Each(place.at(schema)),
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
    /// What a map writes under any key, and such a key.
    pub(crate) fn written(self) -> Option<(&'static str, Schema<'s>)> {
        match self {
            Rest::Each(schema) => Some(("key", schema)),
            Rest::Numbered(schema) => Some(("1", schema)),
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
