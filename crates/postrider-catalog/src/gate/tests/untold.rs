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
    an_integer_deep_inside_is_written_as_text:
        { pub struct Line { price: u64 } pub struct Payload { lines: Option<Vec<Line>> } } =>
        {
            pub struct Line {
                #[serde(serialize_with = "as_text", deserialize_with = "number_or_text")]
                price: u64,
            }
            pub struct Payload { lines: Option<Vec<Line>> }
        } breaks OldReader;
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
