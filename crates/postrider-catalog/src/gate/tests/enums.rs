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
    the_struct_of_a_tagged_newtype_variant_gets_a_required_field:
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Payload { Card(Card), Cash }
        } =>
        {
            pub struct Card { number: String, holder: String }
            #[serde(tag = "kind")] pub enum Payload { Card(Card), Cash }
        } breaks NewReader;
    the_struct_of_a_tagged_newtype_variant_gets_an_optional_field:
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Payload { Card(Card), Cash }
        } =>
        {
            pub struct Card { number: String, holder: Option<String> }
            #[serde(tag = "kind")] pub enum Payload { Card(Card), Cash }
        } breaks Nobody;
    a_tagged_newtype_variant_is_renamed:
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Payload { Card(Card), Cash }
        } =>
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Payload { Debit(Card), Cash }
        } breaks Both;
    a_tagged_newtype_variant_is_added_with_the_same_struct:
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Payload { Debit(Card) }
        } =>
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Payload { Debit(Card), Credit(Card) }
        } breaks OldReader;
    the_tag_of_newtype_variants_is_renamed:
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Payload { Card(Card) }
        } =>
        {
            pub struct Card { number: String }
            #[serde(tag = "type")] pub enum Payload { Card(Card) }
        } breaks Both;
    a_struct_moves_into_a_newtype_variant:
        { #[serde(tag = "kind")] pub enum Payload { Card { number: String }, Cash } } =>
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Payload { Card(Card), Cash }
        } breaks Nobody;
    a_field_beside_a_flattened_enum_is_added:
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, total: u64, #[serde(flatten)] method: Method }
        } breaks NewReader;
    an_optional_field_beside_a_flattened_enum_is_added:
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, note: Option<String>, #[serde(flatten)] method: Method }
        } breaks Nobody;
    a_field_beside_a_flattened_enum_changes_its_type:
        {
            pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: String, #[serde(flatten)] method: Method }
        } breaks Both;
    a_variant_of_a_flattened_enum_is_added:
        {
            pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            pub enum Method { Card { number: String }, Cash, Points(u32) }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } breaks OldReader;
    a_variant_of_a_flattened_enum_is_added_where_unknown_ones_are_read:
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, #[serde(other)] Unknown }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, Cash, #[serde(other)] Unknown }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } breaks Nobody;
    a_field_beside_a_flattened_enum_that_reads_unknown_variants_is_added:
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, #[serde(other)] Unknown }
            pub struct Payload { order: u64, total: u64, #[serde(flatten)] method: Method }
        } breaks Both;
    one_of_two_flattened_enums_loses_a_variant:
        {
            #[serde(tag = "kind")] pub enum Method { Card, Cash }
            #[serde(tag = "state")] pub enum State { Open { since: u64 }, Closed }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method, #[serde(flatten)] state: State }
        } =>
        {
            #[serde(tag = "kind")] pub enum Method { Card, Cash }
            #[serde(tag = "state")] pub enum State { Open { since: u64 } }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method, #[serde(flatten)] state: State }
        } breaks NewReader;
    a_flattened_enum_becomes_optional:
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            #[serde(tag = "kind")] pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Option<Method> }
        } breaks OldReader;
    a_variant_with_a_sentence_of_a_flattened_enum_is_removed:
        {
            pub enum Method {
                Card { number: String },
                /// Cash.
                Cash,
            }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            pub enum Method { Card { number: String } }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } breaks NewReader;
    a_variant_with_a_sentence_of_a_flattened_enum_is_added:
        {
            pub enum Method { Card { number: String } }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            pub enum Method {
                Card { number: String },
                /// Cash.
                Cash,
            }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } breaks OldReader;
    a_variant_of_a_flattened_enum_gets_a_sentence:
        {
            pub enum Method { Card { number: String }, Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            pub enum Method {
                Card { number: String },
                /// Cash.
                Cash,
            }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } breaks Nobody;
    a_variant_is_removed_from_a_flattened_enum_of_names_with_sentences:
        {
            pub enum Method {
                /// A card.
                Card,
                /// Cash.
                Cash,
            }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            pub enum Method {
                /// A card.
                Card,
            }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } breaks NewReader;
    a_flattened_enum_of_names_with_sentences_becomes_optional:
        {
            pub enum Method {
                /// A card.
                Card,
                /// Cash.
                Cash,
            }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            pub enum Method {
                /// A card.
                Card,
                /// Cash.
                Cash,
            }
            pub struct Payload { order: u64, #[serde(flatten)] method: Option<Method> }
        } breaks OldReader;
    an_option_of_an_enum_that_is_written_in_place_is_replaced_by_another:
        {
            pub enum Day { Monday, Tuesday }
            pub struct Payload { day: Option<Day> }
        } =>
        {
            #[schemars(inline)] pub enum Weekday { Monday, Tuesday }
            pub struct Payload { day: Option<Weekday> }
        } breaks Nobody;
    an_optional_string_becomes_an_option_of_an_enum_that_is_written_in_place:
        { pub struct Payload { day: Option<String> } } =>
        {
            #[schemars(inline)] pub enum Weekday { Monday, Tuesday }
            pub struct Payload { day: Option<Weekday> }
        } breaks NewReader;
    a_field_of_a_newtype_variant_in_a_flattened_enum_changes_its_type:
        {
            pub struct Card { number: String }
            #[serde(tag = "kind")] pub enum Method { Card(Card), Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } =>
        {
            pub struct Card { number: u64 }
            #[serde(tag = "kind")] pub enum Method { Card(Card), Cash }
            pub struct Payload { order: u64, #[serde(flatten)] method: Method }
        } breaks Both;
}
