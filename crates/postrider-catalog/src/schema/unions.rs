//! The alternatives of an enum.

use serde_json::Value;

use super::object::{Rest, without};
use super::{Kind, OTHER, Object, Schema, Text, WITHOUT};

/// The variant for all unknown ones, if the enum is marked to have one.
pub(crate) fn other_variant<'s>(place: Schema<'s>, parts: &'s [Value]) -> Option<Kind<'s>> {
    if place.get(OTHER) != Some(&Value::Bool(true)) {
        return None;
    }
    if parts.iter().any(|part| part.get("const").is_some_and(Value::is_string)) {
        return Some(Kind::Text(Text::Free));
    }
    let variants: Vec<_> = parts
        .iter()
        .filter_map(|part| part.as_object().map(|node| Object::of(place.at(part), node)))
        .filter_map(|object| object.variant())
        .collect();
    let tag = variants.first()?.tag?;
    let known =
        variants.iter().filter(|variant| variant.tag == Some(tag)).map(|variant| variant.name).collect();
    let without = without(place.get(WITHOUT));
    Some(Kind::OtherVariant {
        tag,
        known,
        beside: Object { fields: Vec::new(), rest: Rest::Ignored, without, filled: false },
    })
}
