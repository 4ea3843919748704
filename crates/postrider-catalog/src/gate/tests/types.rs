//! Changes of a field's type.

use super::changes;

/// What the types before and after a change need.
pub(super) mod prelude {
    pub(in super::super) use super::super::parsed::*;
    pub(in super::super) use schemars::JsonSchema;
    pub(in super::super) use serde::{Deserialize, Serialize};
    pub(in super::super) use std::collections::{BTreeMap, HashMap, VecDeque};
    pub(in super::super) use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    pub(in super::super) use std::num::{NonZeroI32, NonZeroI64, NonZeroU32};
    pub(in super::super) use uuid::Uuid;
}

changes! {
    an_integer_is_widened:
        { pub struct Payload { amount: u32 } } => { pub struct Payload { amount: u64 } } breaks OldReader at "amount";
    an_integer_is_narrowed:
        { pub struct Payload { amount: i64 } } => { pub struct Payload { amount: i32 } } breaks NewReader at "amount";
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
        { pub struct Payload { order: u64 } } => { pub struct Payload { order: String } } breaks Both at "order";
    a_string_becomes_a_uuid:
        { pub struct Payload { order: String } } => { pub struct Payload { order: uuid::Uuid } } breaks NewReader at "order";
    a_uuid_becomes_a_string:
        { pub struct Payload { order: uuid::Uuid } } => { pub struct Payload { order: String } } breaks OldReader;
    a_character_becomes_a_string:
        { pub struct Payload { grade: char } } => { pub struct Payload { grade: String } } breaks OldReader;
    a_string_becomes_a_newtype_of_one:
        { pub struct Payload { order: String } } =>
        { pub struct OrderId(String); pub struct Payload { order: OrderId } } breaks Nobody;
    one_becomes_a_list:
        { pub struct Payload { item: String } } => { pub struct Payload { item: Vec<String> } } breaks Both at "item";
    a_list_becomes_a_fixed_array:
        { pub struct Payload { items: Vec<u8> } } => { pub struct Payload { items: [u8; 2] } } breaks NewReader;
    a_fixed_array_becomes_a_list:
        { pub struct Payload { items: [u8; 2] } } => { pub struct Payload { items: Vec<u8> } } breaks OldReader;
    a_tuple_gets_longer:
        { pub struct Payload { point: (u8, u8) } } => { pub struct Payload { point: (u8, u8, u8) } } breaks Both at "point";
    the_items_of_a_list_change:
        { pub struct Payload { items: Vec<u64> } } => { pub struct Payload { items: Vec<String> } } breaks Both at "items[]";
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
        { pub struct Payload { prices: BTreeMap<String, String> } } breaks Both at "prices.*";
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
    an_integer_with_a_sign_must_not_be_zero_any_more:
        { pub struct Payload { amount: i32 } } => { pub struct Payload { amount: NonZeroI32 } } breaks NewReader;
    an_integer_with_a_sign_may_be_zero:
        { pub struct Payload { amount: NonZeroI32 } } => { pub struct Payload { amount: i32 } } breaks OldReader;
    an_integer_that_is_not_zero_is_narrowed:
        { pub struct Payload { amount: NonZeroI64 } } => { pub struct Payload { amount: NonZeroI32 } } breaks NewReader;
    an_integer_grows_to_128_bits:
        { pub struct Payload { amount: u64 } } => { pub struct Payload { amount: u128 } } breaks OldReader;
    an_integer_with_a_sign_grows_to_128_bits:
        { pub struct Payload { amount: i64 } } => { pub struct Payload { amount: i128 } } breaks OldReader;
    an_integer_shrinks_from_128_bits:
        { pub struct Payload { amount: u128 } } => { pub struct Payload { amount: u64 } } breaks NewReader;
    an_integer_becomes_one_of_the_size_of_a_pointer:
        { pub struct Payload { amount: i64 } } => { pub struct Payload { amount: isize } } breaks Nobody;
    a_rule_that_an_integer_is_not_zero_is_added:
        { pub struct Payload { amount: u32 } } =>
        { pub struct Payload { #[schemars(range(min = 1))] amount: u32 } } breaks Nobody;
    a_rule_that_an_integer_is_not_zero_becomes_a_type:
        { pub struct Payload { #[schemars(range(min = 1))] amount: u32 } } =>
        { pub struct Payload { amount: NonZeroU32 } } breaks NewReader;
    an_address_may_be_of_either_kind:
        { pub struct Payload { from: Ipv4Addr } } => { pub struct Payload { from: IpAddr } } breaks OldReader;
    an_address_is_of_one_kind:
        { pub struct Payload { from: IpAddr } } => { pub struct Payload { from: Ipv4Addr } } breaks NewReader;
    an_address_is_of_the_other_kind:
        { pub struct Payload { from: IpAddr } } => { pub struct Payload { from: Ipv6Addr } } breaks NewReader;
    the_keys_of_a_map_become_uuids:
        { pub struct Payload { prices: BTreeMap<String, u32> } } =>
        { pub struct Payload { prices: BTreeMap<Uuid, u32> } } breaks NewReader;
    the_keys_of_a_map_become_any_text:
        { pub struct Payload { prices: BTreeMap<Uuid, u32> } } =>
        { pub struct Payload { prices: BTreeMap<String, u32> } } breaks OldReader;
    the_keys_of_a_map_stay_uuids:
        { pub struct Payload { prices: BTreeMap<Uuid, u32> } } =>
        { pub struct Payload { prices: HashMap<Uuid, u32> } } breaks Nobody;
    the_keys_of_a_map_are_narrowed:
        { pub struct Payload { prices: BTreeMap<i64, u32> } } =>
        { pub struct Payload { prices: BTreeMap<u8, u32> } } breaks NewReader;
    the_keys_of_a_map_are_widened:
        { pub struct Payload { prices: Option<BTreeMap<u8, u32>> } } =>
        { pub struct Payload { prices: Option<BTreeMap<u32, u32>> } } breaks OldReader;
    the_keys_of_a_map_become_addresses:
        { pub struct Payload { hits: BTreeMap<IpAddr, u32> } } =>
        { pub struct Payload { hits: BTreeMap<Ipv4Addr, u32> } } breaks NewReader;
    the_values_behind_uuids_change:
        { pub struct Payload { prices: BTreeMap<Uuid, u32> } } =>
        { pub struct Payload { prices: BTreeMap<Uuid, String> } } breaks Both;
    a_value_is_boxed:
        { pub struct Line { sku: String } pub struct Payload { line: Line } } =>
        { pub struct Line { sku: String } pub struct Payload { line: Box<Line> } } breaks Nobody;
    a_list_becomes_a_queue:
        { pub struct Payload { items: Vec<u8> } } => { pub struct Payload { items: VecDeque<u8> } } breaks Nobody;
    a_pair_becomes_a_fixed_array:
        { pub struct Payload { point: (u8, u8) } } => { pub struct Payload { point: [u8; 2] } } breaks Nobody;
    other_fields_are_kept_in_a_flattened_map:
        { pub struct Payload { order: u64 } } =>
        { pub struct Payload { order: u64, #[serde(flatten)] others: BTreeMap<String, serde_json::Value> } } breaks Nobody;
}
