//! A payload's JSON Schema as serde understands it.
//!
//! Keywords that serde does not check (`pattern`, `minimum` of a validation rule, `uniqueItems`) are not looked at: the question is
//! what a program reads and writes, not what it should.

pub(crate) mod accepts;
pub(crate) mod asked;
pub(crate) mod both;
pub(crate) mod compare;
pub(crate) mod integers;
pub(crate) mod keywords;
pub(crate) mod object;
pub(crate) mod probes;
pub(crate) mod sample;
pub(crate) mod unions;
pub(crate) mod variety;
pub(crate) mod words;

use serde_json::{Map, Value};

pub(crate) use integers::{INTEGERS, integers};
pub(crate) use keywords::{
    ALIASES, ANY_LENGTH, ANY_TEXT, AT_MOST, KEYS, LOST, NULL, OTHER, PROBED, REFUSED, UNASKED, WITHOUT, ZERO,
};
pub(crate) use object::Object;

use crate::render::reference;

/// A schema that allows everything.
static ANYTHING: Value = Value::Bool(true);

/// A place in a schema, with the document that its references lead into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema<'s> {
    root: &'s Value,
    node: &'s Value,
    /// Which of its kinds alone counts.
    only: Option<usize>,
}

/// What tells a place, or one kind of it, from all others.
pub(crate) type Identity = (usize, Option<usize>);

/// One kind of JSON value that a schema allows.
#[derive(Debug, Clone)]
pub(crate) enum Kind<'s> {
    Any,
    Null,
    Bool,
    Integer {
        least: i128,
        most: i128,
    },
    Number,
    Text(Text<'s>),
    Constant(&'s Value),
    Array(Array<'s>),
    Object(Object<'s>),
    /// Any variant that the enum does not name: an object whose `tag` is none of `known`, with the fields beside it.
    OtherVariant {
        tag: &'s str,
        known: Vec<&'s str>,
        beside: Object<'s>,
    },
}

/// Which strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text<'s> {
    Free,
    /// A `char`.
    OneCharacter,
    /// A format that a type parses, such as `uuid`.
    Format(&'s str),
}

/// Which arrays.
#[derive(Debug, Clone)]
pub(crate) struct Array<'s> {
    /// The items at fixed places.
    pub(crate) first: Vec<Schema<'s>>,
    /// All others.
    pub(crate) items: Option<Schema<'s>>,
    /// The length, if it is fixed.
    pub(crate) length: Option<usize>,
    /// The fewest items, as far as the type was found to refuse fewer.
    pub(crate) least: usize,
    /// The most items, if the type checks that.
    pub(crate) most: Option<usize>,
}

impl<'s> Schema<'s> {
    pub(crate) fn new(root: &'s Value) -> Self {
        Self { root, node: root, only: None }
    }

    /// Another place in the same document.
    pub(crate) fn at(self, node: &'s Value) -> Self {
        Self { root: self.root, node, only: None }
    }

    /// What its reference leads to, if it has one that leads to a place of this document.
    fn referred(self) -> Option<Self> {
        let pointer = reference::pointer(self.get("$ref")?.as_str()?)?;
        self.root.pointer(&pointer).map(|node| self.at(node))
    }

    /// The place that a reference leads to, if there is nothing but sentences beside it: both allow the same.
    pub(crate) fn target(self) -> Self {
        let mut place = self;
        let mut met = Vec::new();
        while place.only.is_none()
            && !met.contains(&place.address())
            && let Value::Object(node) = place.node
            && node
                .keys()
                .all(|keyword| matches!(keyword.as_str(), "$ref" | "title" | "description" | "default"))
            && let Some(referred) = place.referred()
        {
            met.push(place.address());
            place = referred;
        }
        place
    }

    /// Visits all places that say something about the same value: this one, what it refers to, and the parts of which it is made.
    pub(crate) fn same_value(self, met: &mut Vec<usize>, visit: &mut dyn FnMut(Schema<'s>)) {
        if met.contains(&self.address()) {
            return;
        }
        met.push(self.address());
        visit(self);
        if let Some(referred) = self.referred() {
            referred.same_value(met, visit);
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            for part in self.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.at(part).same_value(met, visit);
            }
        }
    }

    /// The values that the type refuses although the schema allows them.
    pub(crate) fn refused(self) -> Vec<&'s Value> {
        let mut found = Vec::new();
        self.same_value(&mut Vec::new(), &mut |place| {
            found.extend(place.get(REFUSED).and_then(Value::as_array).into_iter().flatten());
        });
        found
    }

    /// Whether a value that does not fit is read as absent.
    pub(crate) fn is_lost(self) -> bool {
        self.get(LOST) == Some(&Value::Bool(true))
    }

    /// Whether the type could not be asked what it reads.
    pub(crate) fn is_unasked(self) -> bool {
        self.get(UNASKED) == Some(&Value::Bool(true))
    }

    /// What the type writes although its schema does not allow it, if it was found to.
    pub(crate) fn written_otherwise(self) -> Option<&'s Value> {
        self.get(UNASKED)?.get("written")
    }

    /// The same place with the kind of this number alone.
    pub(crate) fn only(self, kind: usize) -> Self {
        Self { only: Some(kind), ..self }
    }

    pub(crate) fn identity(self) -> Identity {
        (self.address(), self.only)
    }

    /// What tells this place from all others.
    pub(crate) fn address(self) -> usize {
        std::ptr::from_ref(self.node).addr()
    }

    pub(crate) fn get(self, keyword: &str) -> Option<&'s Value> {
        self.node.get(keyword)
    }

    /// The other names of a field with this schema.
    pub(crate) fn aliases(self) -> impl Iterator<Item = &'s str> {
        let list = self.get(ALIASES).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The kinds of values that it allows.
    pub(crate) fn kinds(self) -> Vec<Kind<'s>> {
        let kinds = self.kinds_below(&mut Vec::new());
        match self.only {
            None => kinds,
            Some(only) => kinds.into_iter().skip(only).take(1).collect(),
        }
    }

    /// The same, on the way from these places. A union of itself allows nothing more.
    fn kinds_below(self, way: &mut Vec<usize>) -> Vec<Kind<'s>> {
        let Value::Object(node) = self.node else {
            // `false` allows nothing.
            return if self.node == &Value::Bool(false) { Vec::new() } else { vec![Kind::Any] };
        };
        if way.contains(&self.address()) {
            return Vec::new();
        }
        way.push(self.address());
        // All that stands beside each other counts: a newtype variant is a reference beside its tag, a flattened enum is a union
        // beside the fields of its struct.
        let mut kinds = self.own_kinds(node);
        if let Some(referred) = self.referred() {
            kinds = both::kinds(&kinds, &referred.kinds_below(way));
        }
        for part in node.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            kinds = both::kinds(&kinds, &self.at(part).kinds_below(way));
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(Value::Array(parts)) = node.get(keyword) {
                let mut union: Vec<_> =
                    parts.iter().flat_map(|part| self.at(part).kinds_below(way)).collect();
                union.extend(unions::other_variant(self, parts));
                kinds = both::kinds(&kinds, &union);
            }
        }
        way.pop();
        kinds
    }

    /// What the place itself says, without what it refers to or is made of.
    fn own_kinds(self, node: &'s Map<String, Value>) -> Vec<Kind<'s>> {
        if let Some(value) = node.get("const") {
            return vec![constant(value)];
        }
        if let Some(Value::Array(values)) = node.get("enum") {
            let other = node.get(OTHER) == Some(&Value::Bool(true));
            let other = other.then_some(Kind::Text(Text::Free));
            return values.iter().map(constant).chain(other).collect();
        }
        match node.get("type") {
            Some(Value::String(name)) => self.kinds_of(name, node),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).flat_map(|name| self.kinds_of(name, node)).collect()
            }
            _ if node.contains_key("properties") => self.kinds_of("object", node),
            _ => vec![Kind::Any],
        }
    }

    fn kinds_of(self, name: &str, node: &'s Map<String, Value>) -> Vec<Kind<'s>> {
        if name == "integer" {
            let ranges = integers(node).into_iter();
            return ranges.map(|(least, most)| Kind::Integer { least, most }).collect();
        }
        vec![match name {
            "null" => Kind::Null,
            "boolean" => Kind::Bool,
            "number" => Kind::Number,
            "string" => Kind::Text(text(node)),
            "array" => Kind::Array(self.array(node)),
            "object" => Kind::Object(Object::of(self, node)),
            _ => Kind::Any,
        }]
    }

    fn array(self, node: &'s Map<String, Value>) -> Array<'s> {
        let first = node.get("prefixItems").and_then(Value::as_array);
        let number = |keyword| {
            node.get(keyword).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
        };
        // A rule about lengths alone is no type of serde's; an array or a tuple has both bounds.
        let length = match (number("minItems"), number("maxItems")) {
            _ if node.contains_key(ANY_LENGTH) => None,
            (None, Some(0)) => Some(0),
            (least, most) => least.filter(|_| least == most),
        };
        Array {
            first: first.into_iter().flatten().map(|item| self.at(item)).collect(),
            items: match node.get("items") {
                Some(Value::Bool(false)) => None,
                items => Some(self.at(items.unwrap_or(&ANYTHING))),
            },
            length,
            least: fewest(node),
            most: number("maxItems").filter(|_| node.contains_key(AT_MOST)),
        }
    }
}

/// How many items a list has at least: lists with fewer are refused, from the empty one on.
fn fewest(node: &Map<String, Value>) -> usize {
    let refused = node.get(REFUSED).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let refuses = |length: usize| {
        refused.iter().any(|value| value.as_array().is_some_and(|items| items.len() == length))
    };
    (0..=refused.len()).find(|length| !refuses(*length)).unwrap_or(0)
}

pub(crate) fn text(node: &Map<String, Value>) -> Text<'_> {
    let bound = |keyword| node.get(keyword).and_then(Value::as_u64);
    if node.contains_key(ANY_TEXT) {
        return Text::Free;
    }
    match node.get("format").and_then(Value::as_str) {
        Some(format) if sample::FORMATS.iter().any(|(name, _)| *name == format) => Text::Format(format),
        _ if bound("minLength") == Some(1) && bound("maxLength") == Some(1) => Text::OneCharacter,
        _ => Text::Free,
    }
}

/// An option of an enum that is written in place has null among its names.
fn constant(value: &Value) -> Kind<'_> {
    if value.is_null() { Kind::Null } else { Kind::Constant(value) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_integer_without_a_sign_that_is_not_zero_begins_at_one() {
        let document = json!({ "type": "integer", "format": "uint32", "not": { "const": 0 } });
        let schema = Schema::new(&document);
        assert_eq!(schema.sample(), json!(1));
        assert!(!schema.accepts(&json!(0)));
        let with_rule =
            json!({ "type": "integer", "format": "uint32", "not": { "const": 0 }, "x-zero": true });
        assert!(Schema::new(&with_rule).accepts(&json!(0)));
    }

    #[test]
    fn a_field_is_not_read_by_its_name_and_an_alias_at_once() {
        let document = json!({
            "type": "object",
            "properties": { "amount": { "type": "integer", "x-aliases": ["total"] } },
            "required": ["amount"],
        });
        let schema = Schema::new(&document);
        assert!(schema.accepts(&json!({ "total": 1 })));
        let refusal = schema.refusal(&json!({ "amount": 1, "total": 1 }));
        assert_eq!(refusal.as_deref(), Some("duplicate field `amount`"));
    }
}
