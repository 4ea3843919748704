//! Changes that a schema does not show, or shows wrongly: the types were asked.

use super::*;

changes! {
    items_of_any_value_become_texts:
        { pub struct Payload { items: Vec<serde_json::Value> } } =>
        { pub struct Payload { items: Vec<String> } } breaks NewReader;
    two_items_of_any_value_become_texts:
        { pub struct Payload { items: [serde_json::Value; 2] } } =>
        { pub struct Payload { items: [String; 2] } } breaks NewReader;
    a_variant_is_added_beside_one_that_is_called_other:
        {
            pub enum Method {
                Card,
                Cash,
                /// All the rest.
                Other,
            }
            pub struct Payload { method: Method }
        } =>
        {
            pub enum Method {
                Card,
                Cash,
                Points,
                /// All the rest.
                Other,
            }
            pub struct Payload { method: Method }
        } breaks OldReader;
    a_type_whose_name_is_not_ascii_changes_inside:
        { #[schemars(rename = "Address/주소 <new>")] pub struct Address { city: String } pub struct Payload { address: Address } } =>
        { #[schemars(rename = "Address/주소 <new>")] pub struct Address { city: u64 } pub struct Payload { address: Address } } breaks Both;
    a_name_is_added_to_the_keys_of_a_map:
        {
            #[derive(PartialEq, Eq, PartialOrd, Ord)]
            pub enum Currency {
                /// Won.
                Krw,
                /// Euro.
                Eur,
            }
            pub struct Payload { prices: BTreeMap<Currency, u32> }
        } =>
        {
            #[derive(PartialEq, Eq, PartialOrd, Ord)]
            pub enum Currency {
                /// Won.
                Krw,
                /// Euro.
                Eur,
                /// Dollar.
                Usd,
            }
            pub struct Payload { prices: BTreeMap<Currency, u32> }
        } breaks OldReader;
    the_keys_of_a_map_become_names:
        { pub struct Payload { prices: BTreeMap<String, u32> } } =>
        {
            #[derive(PartialEq, Eq, PartialOrd, Ord)]
            pub enum Currency {
                /// Won.
                Krw,
                /// Euro.
                Eur,
            }
            pub struct Payload { prices: BTreeMap<Currency, u32> }
        } breaks NewReader;
    a_string_becomes_the_address_of_a_socket:
        { pub struct Payload { from: String } } => { pub struct Payload { from: SocketAddr } } breaks NewReader;
    the_address_of_a_socket_becomes_a_string:
        { pub struct Payload { from: SocketAddr } } => { pub struct Payload { from: String } } breaks OldReader;
    a_string_becomes_a_type_that_parses_it:
        { pub struct Payload { currency: Option<String> } } =>
        { pub struct Payload { currency: Option<CurrencyCode> } } breaks NewReader;
    a_type_that_parses_becomes_another:
        { pub struct Payload { from: CurrencyCode } } => { pub struct Payload { from: SocketAddr } } breaks Both;
    a_type_that_parses_stays:
        { pub struct Payload { currency: CurrencyCode } } =>
        { pub struct Payload { currency: CurrencyCode, note: Option<String> } } breaks Nobody;
    an_integer_becomes_a_type_with_a_rule:
        { pub struct Payload { share: u8 } } => { pub struct Payload { share: Percent } } breaks NewReader;
    an_integer_becomes_an_enum_of_numbers:
        { pub struct Payload { level: u8 } } => { pub struct Payload { level: Level } } breaks NewReader;
    the_keys_of_a_map_change_beside_a_type_that_parses:
        { pub struct Payload { currency: CurrencyCode, stock: BTreeMap<String, u32> } } =>
        { pub struct Payload { currency: CurrencyCode, stock: BTreeMap<Uuid, u32> } } breaks NewReader;
    the_keys_of_a_map_of_values_that_are_parsed_change:
        { pub struct Payload { codes: BTreeMap<String, CurrencyCode> } } =>
        { pub struct Payload { codes: BTreeMap<Uuid, CurrencyCode> } } breaks NewReader;
    the_values_of_a_map_by_uuid_become_a_type_that_parses_them:
        { pub struct Payload { codes: BTreeMap<Uuid, String> } } =>
        { pub struct Payload { codes: BTreeMap<Uuid, CurrencyCode> } } breaks NewReader;
    an_option_that_must_be_there_is_added:
        { pub struct Payload { order: u64 } } =>
        {
            pub struct Payload {
                order: u64,
                #[serde(deserialize_with = "demanded")]
                #[schemars(with = "Option<String>")]
                paid_at: Option<String>,
            }
        } breaks NewReader;
    an_option_in_an_option_becomes_a_string:
        {
            #[allow(clippy::option_option)]
            pub struct Payload {
                #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "answered")]
                note: Option<Option<String>>,
            }
        } =>
        { pub struct Payload { #[serde(default)] note: String } } breaks NewReader;
    a_flattened_option_is_always_there:
        {
            pub struct Address { zip: Option<String> }
            pub struct Payload { order: u64, #[serde(flatten)] address: Option<Address> }
        } =>
        {
            pub struct Address { #[serde(default)] zip: String }
            pub struct Payload { order: u64, #[serde(flatten)] address: Address }
        } breaks NewReader;
    a_variant_with_content_is_added_where_unknown_ones_are_read:
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card(u64), #[serde(other)] Unknown } } =>
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card(u64), Points(u32), #[serde(other)] Unknown } }
        breaks OldReader;
    a_variant_loses_its_content:
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card(u64), Cash(u32) } } =>
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card(u64), Cash } } breaks Both;
    a_variant_gets_a_content_that_may_be_absent:
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card(u64), Cash } } =>
        { #[serde(tag = "kind", content = "data")] pub enum Payload { Card(u64), Cash(Option<u32>) } } breaks OldReader;
    a_struct_becomes_an_enum_that_reads_unknown_variants:
        { pub struct Payload { kind: String, number: Option<String> } } =>
        { #[serde(tag = "kind")] pub enum Payload { Card { number: String }, #[serde(other)] Unknown } } breaks NewReader;
    a_struct_with_an_enum_becomes_an_enum:
        { pub enum Kind { Card, Cash } pub struct Payload { kind: Kind, number: String } } =>
        { #[serde(tag = "kind")] pub enum Payload { Card { number: String }, Cash } } breaks OldReader;
    a_name_with_a_sentence_is_added_where_unknown_ones_are_read:
        {
            pub enum Method {
                /// A card.
                Card,
                /// Something else.
                #[serde(other)]
                Unknown,
            }
            pub struct Payload { method: Method }
        } =>
        {
            pub enum Method {
                /// A card.
                Card,
                /// Points.
                Points,
                /// Something else.
                #[serde(other)]
                Unknown,
            }
            pub struct Payload { method: Method }
        } breaks Nobody;
    a_rule_that_a_string_is_a_uuid_becomes_a_type:
        { pub struct Payload { #[schemars(extend("format" = "uuid"))] order: String } } =>
        { pub struct Payload { order: Uuid } } breaks NewReader;
    a_rule_about_the_length_of_a_list_becomes_a_type:
        { pub struct Payload { #[schemars(length(equal = 2))] items: Vec<u8> } } =>
        { pub struct Payload { items: [u8; 2] } } breaks NewReader;
    a_rule_about_the_length_of_a_string_becomes_a_type:
        { pub struct Payload { #[schemars(length(equal = 1))] grade: String } } =>
        { pub struct Payload { grade: char } } breaks NewReader;
    a_list_must_be_empty:
        { pub struct Payload { items: Vec<u8> } } => { pub struct Payload { items: [u8; 0] } } breaks NewReader;
    an_integer_of_128_bits_gets_a_sign:
        { pub struct Payload { amount: u128 } } => { pub struct Payload { amount: i128 } } breaks Both;
}

/// serde keeps what it flattens as text, and then reads no number from the key of a map.
#[test]
fn numbers_as_keys_are_not_read_from_a_flattened_struct() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Old {
        prices: std::collections::BTreeMap<u32, u32>,
    }
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct New {
        #[serde(flatten)]
        inner: Old,
    }
    let report = compared::<Old, New>();
    let is_new = |finding: &&Finding| finding.reader == Some(ReaderVersion::New);
    let finding = report.findings.iter().find(is_new).unwrap_or_else(|| panic!("{report}"));
    assert_eq!(finding.severity, Severity::Error, "{report}");
    confirm::<Old, New>(finding, finding.counterexample.as_ref().expect("a counterexample"));
}

/// The same with an integer of 128 bits: it can't be read at all.
#[test]
fn an_integer_of_128_bits_is_not_read_from_a_flattened_struct() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Old {
        amount: u128,
    }
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct New {
        #[serde(flatten)]
        inner: Old,
    }
    let report = compared::<Old, New>();
    let errors: Vec<_> =
        report.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let [finding] = errors.as_slice() else { panic!("{report}") };
    assert_eq!(finding.reader, Some(ReaderVersion::New), "{report}");
    confirm::<Old, New>(finding, finding.counterexample.as_ref().expect("a counterexample"));
}

#[test]
fn a_type_that_does_not_read_its_own_schema_is_a_warning() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Asked {
        text: parsed::Riddle,
    }
    let report = compared::<Asked, Asked>();
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.reason.contains("rejects a payload that matches its own schema"), "{finding}");
    assert!(report.passed());
}

/// Whether null is ever written in such a field, its schema does not tell.
#[test]
fn an_option_that_is_left_out_where_it_is_empty_is_a_warning_when_null_is_refused() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Old {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct New {
        #[serde(default)]
        note: String,
    }
    let report = compared::<Old, New>();
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!((finding.severity, finding.field.as_str()), (Severity::Warning, "note"), "{report}");
    assert!(report.passed());
}
