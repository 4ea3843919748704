//! Enums, in each of serde's four forms.

use super::changes;

changes! {
    a_variant_is_added:
        { pub enum Method { Card, Cash } pub struct Payload { method: Method } } =>
        { pub enum Method { Card, Cash, Points } pub struct Payload { method: Method } } breaks OldReader;
    a_variant_is_removed:
        { pub enum Method { Card, Cash } pub struct Payload { method: Method } } =>
        { pub enum Method { Card } pub struct Payload { method: Method } } breaks NewReader;
    a_variant_is_renamed:
        { pub enum Method { Card, Cash } pub struct Payload { method: Method } } =>
        { pub enum Method { Card, Coins } pub struct Payload { method: Method } } breaks Both;
    a_variant_gets_a_doc_comment:
        { pub enum Method { Card, Cash } pub struct Payload { method: Method } } =>
        {
            pub enum Method {
                /// Any card.
                Card,
                Cash,
            }
            pub struct Payload { method: Method }
        } breaks Nobody;
    a_variant_is_added_where_unknown_ones_are_read:
        {
            #[serde(tag = "kind")]
            pub enum Method { Card { number: String }, #[serde(other)] Unknown }
            pub struct Payload { method: Method }
        } =>
        {
            #[serde(tag = "kind")]
            pub enum Method { Card { number: String }, Points { count: u32 }, #[serde(other)] Unknown }
            pub struct Payload { method: Method }
        } breaks Nobody;
    a_name_is_added_where_unknown_ones_are_read:
        { pub enum Method { Card, #[serde(other)] Unknown } pub struct Payload { method: Option<Method> } } =>
        { pub enum Method { Card, Points, #[serde(other)] Unknown } pub struct Payload { method: Option<Method> } } breaks Nobody;
    unknown_variants_are_no_longer_read:
        { #[serde(tag = "kind")] pub enum Payload { Card, #[serde(other)] Unknown } } =>
        { #[serde(tag = "kind")] pub enum Payload { Card } } breaks NewReader;
    a_variant_with_fields_is_added:
        { pub enum Payload { Card { number: String } } } =>
        { pub enum Payload { Card { number: String }, Cash { till: u8 } } } breaks OldReader;
    a_field_of_a_variant_becomes_required:
        { #[serde(tag = "kind")] pub enum Payload { Card { number: String }, Cash } } =>
        { #[serde(tag = "kind")] pub enum Payload { Card { number: String, holder: String }, Cash } } breaks NewReader;
    the_tag_of_an_enum_is_renamed:
        { #[serde(tag = "kind")] pub enum Payload { Card { number: String }, Cash } } =>
        { #[serde(tag = "type")] pub enum Payload { Card { number: String }, Cash } } breaks Both;
    an_enum_is_tagged_otherwise:
        { pub enum Payload { Card { number: String } } } =>
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card { number: String } } } breaks Both;
    a_content_changes_its_type:
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card(u64), Cash } } =>
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card(String), Cash } } breaks Both;
    an_untagged_form_is_added:
        { #[serde(untagged)] pub enum Payload { ById { id: u64 } } } =>
        { #[serde(untagged)] pub enum Payload { ById { id: u64 }, ByName { name: String } } } breaks OldReader;
    a_string_becomes_an_enum:
        { pub struct Payload { method: String } } =>
        { pub enum Method { Card, Cash } pub struct Payload { method: Method } } breaks NewReader;
    an_enum_becomes_a_string:
        { pub enum Method { Card, Cash } pub struct Payload { method: Method } } =>
        { pub struct Payload { method: String } } breaks OldReader;
}
