//! Fields that come, go, and change their name.

use super::*;

changes! {
    an_optional_field_is_added:
        { pub struct Payload { order: u64 } } => { pub struct Payload { order: u64, note: Option<String> } } breaks Nobody;
    a_field_with_a_default_is_added:
        { pub struct Payload { order: u64 } } =>
        { pub struct Payload { order: u64, #[serde(default)] count: u32 } } breaks Nobody;
    a_required_field_is_added:
        { pub struct Payload { order: u64 } } => { pub struct Payload { order: u64, count: u32 } } breaks NewReader at "count";
    a_required_field_is_removed:
        { pub struct Payload { order: u64, count: u32 } } => { pub struct Payload { order: u64 } } breaks OldReader at "count";
    an_optional_field_is_removed:
        { pub struct Payload { order: u64, note: Option<String> } } => { pub struct Payload { order: u64 } } breaks Nobody;
    a_field_is_renamed:
        { pub struct Payload { order: u64 } } => { pub struct Payload { order_id: u64 } } breaks Both;
    an_optional_field_is_renamed:
        { pub struct Payload { note: Option<String> } } => { pub struct Payload { remark: Option<String> } } breaks Nobody;
    a_field_is_renamed_in_rust_alone:
        { pub struct Payload { order: u64 } } =>
        { pub struct Payload { #[serde(rename = "order")] order_id: u64 } } breaks Nobody;
    all_fields_are_renamed_by_a_rule:
        { pub struct Payload { order_id: u64 } } =>
        { #[serde(rename_all = "camelCase")] pub struct Payload { order_id: u64 } } breaks Both;
    a_renamed_field_is_still_read_by_its_old_name:
        { pub struct Payload { order: u64 } } =>
        {
            pub struct Payload {
                #[serde(alias = "order")]
                #[schemars(extend("x-aliases" = ["order"]))]
                order_id: u64,
            }
        } breaks OldReader;
    a_field_with_the_name_of_an_alias_is_added:
        {
            pub struct Payload {
                #[serde(alias = "total")]
                #[schemars(extend("x-aliases" = ["total"]))]
                amount: u64,
            }
        } =>
        { pub struct Payload { amount: u64, #[serde(default)] total: u64 } } breaks OldReader;
    a_field_that_is_not_always_there_gets_the_name_of_an_alias:
        {
            pub struct Payload {
                #[serde(default, skip_serializing_if = "Option::is_none", alias = "remark")]
                #[schemars(extend("x-aliases" = ["remark"]))]
                note: Option<String>,
            }
        } =>
        {
            pub struct Payload {
                #[serde(default, skip_serializing_if = "Option::is_none")]
                note: Option<String>,
                #[serde(default, skip_serializing_if = "Option::is_none")]
                remark: Option<String>,
            }
        } breaks OldReader;
    a_field_becomes_optional:
        { pub struct Payload { note: String } } => { pub struct Payload { note: Option<String> } } breaks OldReader at "note";
    a_field_becomes_optional_and_is_left_out_when_empty:
        { pub struct Payload { note: String } } =>
        { pub struct Payload { #[serde(skip_serializing_if = "Option::is_none")] note: Option<String> } } breaks OldReader at "note";
    an_optional_field_becomes_required:
        { pub struct Payload { note: Option<String> } } => { pub struct Payload { note: String } } breaks NewReader at "note";
    an_optional_field_gets_a_default_but_may_not_be_null:
        { pub struct Payload { note: Option<String> } } =>
        { pub struct Payload { #[serde(default)] note: String } } breaks NewReader at "note";
    a_field_is_no_longer_written:
        { pub struct Payload { order: u64, count: u32 } } =>
        { pub struct Payload { order: u64, #[serde(skip_serializing, default)] count: u32 } } breaks OldReader at "count";
    unknown_fields_are_denied:
        { pub struct Payload { order: u64 } } =>
        { #[serde(deny_unknown_fields)] pub struct Payload { order: u64 } } breaks Nobody;
    a_field_is_removed_and_unknown_fields_are_denied:
        { pub struct Payload { order: u64, note: Option<String> } } =>
        { #[serde(deny_unknown_fields)] pub struct Payload { order: u64 } } breaks NewReader at "note";
    an_optional_field_is_added_where_unknown_fields_were_denied:
        { #[serde(deny_unknown_fields)] pub struct Payload { order: u64 } } =>
        { #[serde(deny_unknown_fields)] pub struct Payload { order: u64, note: Option<String> } } breaks OldReader at "note";
    fields_move_into_a_flattened_struct:
        { pub struct Payload { order: u64, city: String } } =>
        { pub struct Address { city: String } pub struct Payload { order: u64, #[serde(flatten)] address: Address } } breaks Nobody;
    fields_move_into_a_struct_of_their_own:
        { pub struct Payload { order: u64, city: String } } =>
        { pub struct Address { city: String } pub struct Payload { order: u64, address: Address } } breaks Both;
    a_required_field_is_added_deep_inside:
        { pub struct Line { sku: String } pub struct Payload { lines: Vec<Line> } } =>
        { pub struct Line { sku: String, price: u64 } pub struct Payload { lines: Vec<Line> } } breaks NewReader at "lines[].price";
    a_type_that_holds_itself_gets_an_optional_field:
        { pub struct Payload { name: String, parent: Option<Box<Payload>> } } =>
        { pub struct Payload { name: String, note: Option<String>, parent: Option<Box<Payload>> } } breaks Nobody;
    a_type_that_holds_itself_gets_a_required_field:
        { pub struct Payload { name: String, parent: Option<Box<Payload>> } } =>
        { pub struct Payload { name: String, size: u8, parent: Option<Box<Payload>> } } breaks NewReader at "size";
}

#[test]
fn an_optional_field_that_is_removed_or_renamed_is_a_warning_in_each_direction() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Line {
        note: Option<String>,
    }
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Old {
        order: u64,
        lines: Vec<Line>,
    }
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Renamed {
        remark: Option<String>,
    }
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct New {
        order: u64,
        lines: Vec<Renamed>,
    }
    let report = compared::<Old, New>();
    let found: Vec<_> =
        report.findings.iter().map(|finding| (finding.severity, finding.sentence())).collect();
    let warnings = [
        "OrderPaid version 1: a new program on old events: field `lines[].note` is no longer known to the reader: what it held is lost",
        "OrderPaid version 1: an old program on new events: field `lines[].note` is no longer written: the reader treats it as missing",
    ];
    assert_eq!(found, warnings.map(|warning| (Severity::Warning, warning.to_owned())));
    assert!(report.passed());
    // A field that is added is not lost.
    let added = compared::<Renamed, Both>();
    assert_eq!(added.findings, []);
}

#[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Both {
    remark: Option<String>,
    note: Option<String>,
}
