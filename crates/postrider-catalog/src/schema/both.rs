//! What two schemas of one place allow together: serde's `flatten` and newtype variants are written as a schema beside others.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::object::{Field, Rest};
use super::{Kind, Object, Schema, Text};

/// What a variant without content holds where its enum is flattened.
static NULL: LazyLock<Value> = LazyLock::new(|| json!({ "type": "null" }));

/// The kinds that both allow.
pub(crate) fn kinds<'s>(one: &[Kind<'s>], other: &[Kind<'s>]) -> Vec<Kind<'s>> {
    one.iter().flat_map(|one| other.iter().filter_map(|other| kind(one, other))).collect()
}

fn kind<'s>(one: &Kind<'s>, other: &Kind<'s>) -> Option<Kind<'s>> {
    Some(match (one, other) {
        (Kind::Any, kind) | (kind, Kind::Any) => kind.clone(),
        // schemars leaves the name of a flattened variant as a constant if it has a doc comment; serde writes a field with that name.
        (Kind::Object(object), Kind::Constant(Value::String(name)))
        | (Kind::Constant(Value::String(name)), Kind::Object(object)) => {
            Kind::Object(with_variant(object, name))
        }
        (Kind::Constant(value), kind) | (kind, Kind::Constant(value)) => {
            return kind.accepts(value).then_some(Kind::Constant(value));
        }
        (Kind::Null, Kind::Null) => Kind::Null,
        (Kind::Bool, Kind::Bool) => Kind::Bool,
        (Kind::Number, number @ (Kind::Number | Kind::Integer { .. }))
        | (number @ Kind::Integer { .. }, Kind::Number) => number.clone(),
        (Kind::Integer { least, most }, Kind::Integer { least: lowest, most: highest }) => {
            let (least, most) = (*least.max(lowest), *most.min(highest));
            return (least <= most).then_some(Kind::Integer { least, most });
        }
        (Kind::Text(Text::Free), Kind::Text(text)) | (Kind::Text(text), Kind::Text(_)) => Kind::Text(*text),
        (Kind::Array(array), Kind::Array(_)) => Kind::Array(array.clone()),
        (Kind::Object(one), Kind::Object(other)) => Kind::Object(objects(one, other)),
        (Kind::OtherVariant { tag, known, beside }, Kind::Object(object))
        | (Kind::Object(object), Kind::OtherVariant { tag, known, beside }) => {
            Kind::OtherVariant { tag, known: known.clone(), beside: objects(beside, object) }
        }
        _ => return None,
    })
}

/// An object with a field for a variant without content.
fn with_variant<'s>(object: &Object<'s>, name: &'s str) -> Object<'s> {
    let mut object = object.clone();
    object.fields.retain(|field| field.name != name);
    object.fields.push(Field { name, schema: Schema::new(&NULL), required: true });
    object
}

/// One object with the fields of both. A field that both have is the first one's.
fn objects<'s>(one: &Object<'s>, other: &Object<'s>) -> Object<'s> {
    let needed =
        |field: &Field<'s>| field.required || other.field(field.name).is_some_and(|same| same.required);
    let mut fields: Vec<_> =
        one.fields.iter().map(|field| Field { required: needed(field), ..*field }).collect();
    fields.extend(other.fields.iter().filter(|field| one.field(field.name).is_none()));
    let rest = match (one.rest, other.rest) {
        (map @ Rest::Each(..), _) | (_, map @ Rest::Each(..)) => map,
        (Rest::Denied, _) | (_, Rest::Denied) => Rest::Denied,
        (Rest::Ignored, Rest::Ignored) => Rest::Ignored,
    };
    let without = one.without.iter().chain(&other.without).copied().collect();
    Object { fields, rest, without, filled: one.filled || other.filled }
}
