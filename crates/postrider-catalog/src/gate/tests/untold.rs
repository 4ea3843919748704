//! Changes that the schemas do not tell at all: only what the types were asked.

use super::*;

changes! {
    an_integer_is_written_as_text:
        { pub struct Payload { amount: u64 } } =>
        {
            pub struct Payload {
                #[serde(serialize_with = "as_text", deserialize_with = "number_or_text")]
                amount: u64,
            }
        } breaks OldReader;
    an_integer_is_no_longer_written_as_text:
        {
            pub struct Payload {
                #[serde(serialize_with = "as_text", deserialize_with = "number_or_text")]
                amount: u64,
            }
        } =>
        { pub struct Payload { amount: u64 } } breaks NewReader;
    an_integer_deep_inside_is_written_as_text:
        { pub struct Line { price: u64 } pub struct Payload { lines: Option<Vec<Line>> } } =>
        {
            pub struct Line {
                #[serde(serialize_with = "as_text", deserialize_with = "number_or_text")]
                price: u64,
            }
            pub struct Payload { lines: Option<Vec<Line>> }
        } breaks OldReader;
    a_name_is_added_to_the_keys_of_a_flattened_map:
        {
            #[derive(PartialEq, Eq, PartialOrd, Ord)]
            pub enum Currency { Krw, Eur }
            pub struct Payload { order: u64, #[serde(flatten)] prices: BTreeMap<Currency, u32> }
        } =>
        {
            #[derive(PartialEq, Eq, PartialOrd, Ord)]
            pub enum Currency { Krw, Eur, Usd }
            pub struct Payload { order: u64, #[serde(flatten)] prices: BTreeMap<Currency, u32> }
        } breaks OldReader;
    an_optional_field_is_added_beside_a_flattened_map_of_names:
        {
            #[derive(PartialEq, Eq, PartialOrd, Ord)]
            pub enum Currency { Krw, Eur }
            pub struct Payload { order: u64, #[serde(flatten)] prices: BTreeMap<Currency, u32> }
        } =>
        {
            #[derive(PartialEq, Eq, PartialOrd, Ord)]
            pub enum Currency { Krw, Eur }
            pub struct Payload { order: u64, note: Option<String>, #[serde(flatten)] prices: BTreeMap<Currency, u32> }
        } breaks OldReader;
    an_optional_field_is_added_to_an_alternative_that_denies_unknown_ones:
        {
            #[serde(untagged, deny_unknown_fields)]
            pub enum Means { Card { number: u64 }, Cash { coins: u32 } }
            #[serde(tag = "kind")]
            pub enum Payload { Paid(Means) }
        } =>
        {
            #[serde(untagged, deny_unknown_fields)]
            pub enum Means { Card { number: u64, note: Option<String> }, Cash { coins: u32 } }
            #[serde(tag = "kind")]
            pub enum Payload { Paid(Means) }
        } breaks OldReader;
    the_integers_that_are_keys_must_not_be_zero:
        { pub struct Payload { prices: BTreeMap<u32, u32> } } =>
        { pub struct Payload { prices: BTreeMap<NonZeroU32, u32> } } breaks NewReader;
    a_list_gets_a_greatest_length:
        { pub struct Payload { items: Vec<u8> } } => { pub struct Payload { items: AtMostTwo } } breaks NewReader;
    a_list_loses_its_greatest_length:
        { pub struct Payload { items: AtMostTwo } } => { pub struct Payload { items: Vec<u8> } } breaks OldReader;
    a_list_with_a_greatest_length_becomes_a_longer_array:
        { pub struct Payload { items: AtMostTwo } } => { pub struct Payload { items: [u8; 3] } } breaks Both;
    a_rule_about_the_greatest_length_of_a_list_is_added:
        { pub struct Payload { items: Vec<u8> } } =>
        { pub struct Payload { #[schemars(length(max = 2))] items: Vec<u8> } } breaks Nobody;
    a_boolean_must_be_true:
        { pub struct Payload { terms: bool } } => { pub struct Payload { terms: Accepted } } breaks NewReader;
    a_boolean_need_not_be_true:
        { pub struct Payload { terms: Option<Accepted> } } => { pub struct Payload { terms: Option<bool> } } breaks OldReader;
    a_boolean_must_be_false:
        { pub struct Payload { draft: bool } } => { pub struct Payload { draft: Declined } } breaks NewReader;
    an_option_must_not_be_null:
        { pub struct Payload { note: Option<String> } } =>
        {
            pub struct Payload {
                #[serde(default, deserialize_with = "answer", skip_serializing_if = "Option::is_none")]
                note: Option<String>,
            }
        } breaks NewReader;
    a_list_must_not_be_empty:
        { pub struct Payload { items: Vec<u8> } } => { pub struct Payload { items: Filled } } breaks NewReader;
    an_optional_list_must_not_be_empty:
        { pub struct Payload { items: Option<Vec<u8>> } } =>
        { pub struct Payload { items: Option<Filled> } } breaks NewReader;
    a_text_becomes_parsed_beside_a_list_that_is_not_empty:
        { pub struct Payload { currency: String, items: Filled } } =>
        { pub struct Payload { currency: CurrencyCode, items: Filled } } breaks NewReader;
    a_text_becomes_parsed_in_a_list_of_two_or_more:
        { pub struct Payload { items: Several<String> } } =>
        { pub struct Payload { items: Several<CurrencyCode> } } breaks NewReader;
    a_text_becomes_parsed_beside_a_map_that_is_not_empty:
        { pub struct Payload { currency: String, prices: Priced } } =>
        { pub struct Payload { currency: CurrencyCode, prices: Priced } } breaks NewReader;
    a_share_of_a_hundred_becomes_a_smaller_integer:
        { pub struct Payload { share: Percent } } => { pub struct Payload { share: i8 } } breaks OldReader;
    a_share_of_a_hundred_becomes_a_smaller_integer_without_a_sign:
        { pub struct Payload { share: WidePercent } } => { pub struct Payload { share: u8 } } breaks OldReader;
}

#[test]
fn a_type_that_writes_something_else_than_its_schema_is_a_warning_while_it_stays_so() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Paid {
        #[serde(serialize_with = "parsed::as_text", deserialize_with = "parsed::number_or_text")]
        amount: u64,
    }
    let report = compared::<Paid, Paid>();
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!((finding.severity, finding.reader), (Severity::Warning, None));
    assert!(finding.reason.contains("writes a payload that its schema does not allow"), "{finding}");
}
