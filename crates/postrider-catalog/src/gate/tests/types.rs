//! Changes of a field's type.

use super::changes;

/// What the types before and after a change need.
pub(super) mod prelude {
    pub(in super::super) use schemars::JsonSchema;
    pub(in super::super) use serde::{Deserialize, Serialize};
    pub(in super::super) use std::collections::BTreeMap;
}

changes! {
    an_integer_is_widened:
        { pub struct Payload { amount: u32 } } => { pub struct Payload { amount: u64 } } breaks OldReader;
    an_integer_is_narrowed:
        { pub struct Payload { amount: i64 } } => { pub struct Payload { amount: i32 } } breaks NewReader;
    an_integer_gets_a_sign:
        { pub struct Payload { amount: u32 } } => { pub struct Payload { amount: i64 } } breaks OldReader;
    an_integer_loses_its_sign:
        { pub struct Payload { amount: i64 } } => { pub struct Payload { amount: u64 } } breaks Both;
    an_integer_must_not_be_zero_any_more:
        { pub struct Payload { amount: u32 } } => { pub struct Payload { amount: std::num::NonZeroU32 } } breaks NewReader;
    an_integer_becomes_a_float:
        { pub struct Payload { amount: u32 } } => { pub struct Payload { amount: f64 } } breaks OldReader;
    a_float_becomes_more_exact:
        { pub struct Payload { amount: f32 } } => { pub struct Payload { amount: f64 } } breaks Nobody;
    a_number_becomes_a_string:
        { pub struct Payload { order: u64 } } => { pub struct Payload { order: String } } breaks Both;
    a_string_becomes_a_uuid:
        { pub struct Payload { order: String } } => { pub struct Payload { order: uuid::Uuid } } breaks NewReader;
    a_uuid_becomes_a_string:
        { pub struct Payload { order: uuid::Uuid } } => { pub struct Payload { order: String } } breaks OldReader;
    a_character_becomes_a_string:
        { pub struct Payload { grade: char } } => { pub struct Payload { grade: String } } breaks OldReader;
    a_string_becomes_a_newtype_of_one:
        { pub struct Payload { order: String } } =>
        { pub struct OrderId(String); pub struct Payload { order: OrderId } } breaks Nobody;
    one_becomes_a_list:
        { pub struct Payload { item: String } } => { pub struct Payload { item: Vec<String> } } breaks Both;
    a_list_becomes_a_fixed_array:
        { pub struct Payload { items: Vec<u8> } } => { pub struct Payload { items: [u8; 2] } } breaks NewReader;
    a_fixed_array_becomes_a_list:
        { pub struct Payload { items: [u8; 2] } } => { pub struct Payload { items: Vec<u8> } } breaks OldReader;
    a_tuple_gets_longer:
        { pub struct Payload { point: (u8, u8) } } => { pub struct Payload { point: (u8, u8, u8) } } breaks Both;
    the_items_of_a_list_change:
        { pub struct Payload { items: Vec<u64> } } => { pub struct Payload { items: Vec<String> } } breaks Both;
    a_struct_becomes_a_map_of_the_same_values:
        { pub struct Prices { net: u32, gross: u32 } pub struct Payload { prices: Prices } } =>
        { pub struct Payload { prices: BTreeMap<String, u32> } } breaks OldReader;
    a_map_becomes_a_struct:
        { pub struct Payload { prices: BTreeMap<String, u32> } } =>
        { pub struct Prices { net: u32 } pub struct Payload { prices: Prices } } breaks NewReader;
    a_map_becomes_a_struct_of_optional_fields_of_another_type:
        { pub struct Payload { prices: BTreeMap<String, u32> } } =>
        { pub struct Prices { net: Option<String> } pub struct Payload { prices: Prices } } breaks Both;
    the_values_of_a_map_change:
        { pub struct Payload { prices: BTreeMap<String, u32> } } =>
        { pub struct Payload { prices: BTreeMap<String, String> } } breaks Both;
    the_values_of_a_map_by_number_become_optional:
        { pub struct Payload { prices: BTreeMap<u32, u32> } } =>
        { pub struct Payload { prices: BTreeMap<u32, Option<u32>> } } breaks OldReader;
    the_keys_of_a_map_become_numbers:
        { pub struct Payload { prices: BTreeMap<String, u32> } } =>
        { pub struct Payload { prices: BTreeMap<u32, u32> } } breaks NewReader;
    a_known_type_becomes_any_value:
        { pub struct Payload { extra: String } } => { pub struct Payload { extra: serde_json::Value } } breaks OldReader;
    any_value_becomes_a_known_type:
        { pub struct Payload { extra: serde_json::Value } } => { pub struct Payload { extra: String } } breaks NewReader;
    a_rule_that_serde_does_not_check_is_added:
        { pub struct Payload { mail: String } } =>
        { pub struct Payload { #[schemars(email, length(max = 9))] mail: String } } breaks Nobody;
}
