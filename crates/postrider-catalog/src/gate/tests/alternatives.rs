//! Alternatives that read a payload together, and parts that are lost where they don't fit.

use super::*;

changes! {
    an_untagged_value_moves_into_two_untagged_forms:
        {
            #[serde(untagged)] pub enum IntOrText { Int(u64), Text(String) }
            pub struct Payload { value: IntOrText }
        } =>
        { #[serde(untagged)] pub enum Payload { Int { value: u64 }, Text { value: String } } } breaks Nobody;
    an_untagged_value_moves_into_two_untagged_forms_that_lack_one_of_its_types:
        {
            #[serde(untagged)] pub enum Loose { Int(u64), Truth(bool), Text(String) }
            pub struct Payload { value: Loose }
        } =>
        { #[serde(untagged)] pub enum Payload { Int { value: u64 }, Text { value: String } } } breaks NewReader;
    two_untagged_values_move_into_forms_that_read_some_pairs_of_them:
        {
            #[serde(untagged)] pub enum IntOrText { Int(u64), Text(String) }
            pub struct Payload { from: IntOrText, to: IntOrText }
        } =>
        {
            #[serde(untagged)]
            pub enum Payload { Up { from: u64, to: String }, Down { from: String, to: u64 } }
        } breaks NewReader;
    a_list_of_untagged_values_becomes_lists_of_one_type:
        {
            #[serde(untagged)] pub enum IntOrText { Int(u64), Text(String) }
            pub struct Payload { values: Vec<IntOrText> }
        } =>
        {
            #[serde(untagged)] pub enum OfOneType { Ints(Vec<u64>), Texts(Vec<String>) }
            pub struct Payload { values: OfOneType }
        } breaks NewReader;
    a_variant_without_fields_gets_an_optional_one_where_unknown_fields_are_denied:
        { #[serde(tag = "kind", deny_unknown_fields)] pub enum Payload { Card { number: String }, Cash } } =>
        {
            #[serde(tag = "kind", deny_unknown_fields)]
            pub enum Payload { Card { number: String }, Cash { #[serde(default)] till: Option<u8> } }
        } breaks Nobody;
    a_variant_with_fields_gets_an_optional_one_where_unknown_fields_are_denied:
        { #[serde(tag = "kind", deny_unknown_fields)] pub enum Payload { Card { number: String }, Cash } } =>
        {
            #[serde(tag = "kind", deny_unknown_fields)]
            pub enum Payload { Card { number: String, #[serde(default)] holder: Option<String> }, Cash }
        } breaks OldReader;
    an_optional_moment_becomes_an_optional_time_of_day:
        {
            pub struct Payload {
                #[schemars(with = "Option<String>", extend("format" = "date-time"))]
                at: Option<Moment>,
            }
        } =>
        {
            pub struct Payload {
                #[schemars(with = "Option<String>", extend("format" = "time"))]
                at: Option<Hour>,
            }
        } breaks Both;
    a_moment_becomes_a_time_of_day_or_an_integer:
        { pub struct Payload { #[schemars(with = "String", extend("format" = "date-time"))] at: Moment } } =>
        {
            #[serde(untagged)]
            pub enum Payload {
                Hour { #[schemars(with = "String", extend("format" = "time"))] at: Hour },
                Number { at: u64 },
            }
        } breaks Both;
    a_type_that_parses_becomes_an_enum:
        { pub struct Payload { currency: CurrencyCode } } =>
        {
            #[serde(rename_all = "UPPERCASE")] pub enum Currency { Usd, Eur }
            pub struct Payload { currency: Currency }
        } breaks NewReader;
    a_type_that_parses_becomes_an_integer:
        { pub struct Payload { currency: CurrencyCode } } => { pub struct Payload { currency: u64 } } breaks Both;
    a_type_that_parses_becomes_a_character:
        { pub struct Payload { currency: CurrencyCode } } => { pub struct Payload { currency: char } } breaks Both;
    a_float_becomes_a_type_with_a_rule:
        { pub struct Payload { north: f64 } } => { pub struct Payload { north: Latitude } } breaks NewReader;
    an_optional_float_becomes_a_type_with_a_rule:
        { pub struct Payload { north: Option<f64> } } => { pub struct Payload { north: Option<Latitude> } } breaks NewReader;
    a_float_with_a_rule_becomes_a_string:
        { pub struct Payload { north: Latitude } } => { pub struct Payload { north: String } } breaks Both;
}

/// A change that passes with one warning for the new reader, and without an example. The types confirm that it breaks nobody.
fn warned<Old: JsonType, New: JsonType>() -> Finding {
    let report = compared::<Old, New>();
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!((finding.severity, finding.reader), (Severity::Warning, Some(ReaderVersion::New)), "{report}");
    assert_eq!(finding.counterexample, None, "{report}");
    reads_all::<New, Old>();
    reads_all::<Old, New>();
    finding.clone()
}

#[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
struct At<T> {
    at: T,
}

#[test]
fn a_format_that_a_type_parses_already_is_a_warning_when_its_schema_tells_it() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Told {
        #[schemars(with = "String", extend("format" = "date-time"))]
        at: parsed::Moment,
    }
    let finding = warned::<At<parsed::Moment>, Told>();
    let expected = "holds strings that its type parses; the reader may not accept all of them (it expects a date-time string)";
    assert_eq!((finding.field.as_str(), finding.reason.as_str()), ("at", expected));
}

#[test]
fn a_text_that_is_a_uuid_becomes_a_uuid_with_a_warning() {
    warned::<At<parsed::Reference>, At<uuid::Uuid>>();
    warned::<At<Option<parsed::Reference>>, At<Option<uuid::Uuid>>>();
}

#[test]
fn a_part_of_a_flattened_option_that_does_not_fit_is_a_warning_that_it_is_lost() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Address<T> {
        zip: T,
    }
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Payload<T> {
        order: u64,
        #[serde(flatten)]
        address: Option<Address<T>>,
    }
    let report = compared::<Payload<u64>, Payload<String>>();
    assert!(report.passed() && report.findings.len() == 2, "{report}");
    for finding in &report.findings {
        assert_eq!((finding.field.as_str(), &finding.counterexample), ("zip", &None));
        assert!(finding.reason.ends_with("it is read as absent, so its part is lost"), "{finding}");
    }
    reads_all::<Payload<u64>, Payload<String>>();
    reads_all::<Payload<String>, Payload<u64>>();
}
