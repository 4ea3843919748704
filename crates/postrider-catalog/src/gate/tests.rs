//! Changes of a payload, each with its verdict. Real serde types on both sides confirm every verdict and every counterexample.

mod alternatives;
mod asked;
mod enums;
mod fields;
mod linked;
mod parsed;
mod recursive;
mod types;
mod untold;
mod whole;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;
use crate::model::PayloadSchema;
use crate::payload;

/// Who can't read after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Nobody,
    OldReader,
    NewReader,
    Both,
}

/// A change, with the types before and after it. Each of them derives what serde and the schema need.
macro_rules! changes {
    ($($name:ident: { $($old:item)* } => { $($new:item)* } breaks $breaks:ident $(at $field:literal)?;)*) => {$(
        #[test]
        fn $name() {
            #[allow(dead_code, unused_imports, unreachable_pub)]
            mod old {
                use crate::gate::tests::types::prelude::*;
                $(#[derive(Serialize, Deserialize, JsonSchema)] $old)*
            }
            #[allow(dead_code, unused_imports, unreachable_pub)]
            mod new {
                use crate::gate::tests::types::prelude::*;
                $(#[derive(Serialize, Deserialize, JsonSchema)] $new)*
            }
            let fields: &[&str] = &[$($field)?];
            $crate::gate::tests::judge::<old::Payload, new::Payload>($crate::gate::tests::Breaks::$breaks, fields);
        }
    )*};
}
use changes;

fn schema<T: JsonType>() -> PayloadSchema {
    payload::of::<T>()
}

trait JsonType: schemars::JsonSchema + Serialize + DeserializeOwned {}
impl<T: schemars::JsonSchema + Serialize + DeserializeOwned> JsonType for T {}

fn entry(payload: PayloadSchema) -> EventEntry {
    EventEntry {
        name: "OrderPaid".into(),
        version: 1,
        stream: "orders".into(),
        aggregate: "Order".into(),
        ordering_key: "aggregate".into(),
        sequenced: false,
        summary: None,
        publishers: Vec::new(),
        upcast_from: Vec::new(),
        payload: Some(payload),
    }
}

fn file(entry: EventEntry) -> CatalogFile {
    CatalogFile { format: 1, system: "shop".into(), events: vec![entry], subscribers: Vec::new() }
}

fn compared<Old: JsonType, New: JsonType>() -> Report {
    let mut lock = Lock::new();
    lock.update(&file(entry(schema::<Old>())));
    check(&file(entry(schema::<New>())), &lock)
}

/// Judges a change, and lets the types confirm the verdict. A row that is about a field names it.
fn judge<Old: JsonType, New: JsonType>(expected: Breaks, fields: &[&str]) {
    let report = compared::<Old, New>();
    let errors = || report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let shown = || report.findings.iter().filter(|finding| finding.counterexample.is_some());
    let broken = |reader| errors().any(|finding| finding.reader == Some(reader));
    let breaks = match (broken(ReaderVersion::Old), broken(ReaderVersion::New)) {
        (false, false) => Breaks::Nobody,
        (true, false) => Breaks::OldReader,
        (false, true) => Breaks::NewReader,
        (true, true) => Breaks::Both,
    };
    assert_eq!(report.passed(), expected == Breaks::Nobody, "{report}");
    for field in fields {
        assert!(errors().all(|finding| finding.field == *field), "{report}");
    }
    assert_eq!(breaks, expected, "{report}");
    for finding in shown() {
        let example = finding.counterexample.as_ref().expect("a counterexample");
        match finding.reader {
            Some(ReaderVersion::Old) => confirm::<New, Old>(finding, example),
            Some(ReaderVersion::New) => confirm::<Old, New>(finding, example),
            None => {}
        }
    }
    let is_unshown =
        |finding: &&Finding| finding.counterexample.is_none() && finding.severity == Severity::Error;
    assert_eq!(report.findings.iter().find(is_unshown), None, "{report}");
    if !broken(ReaderVersion::Old) {
        reads_all::<New, Old>();
    }
    if !broken(ReaderVersion::New) {
        reads_all::<Old, New>();
    }
}

/// The writer writes the counterexample, and the reader can't read it.
fn confirm<Writer: JsonType, Reader: JsonType>(finding: &Finding, example: &Value) {
    let text = crate::report::exact_text(example);
    let written: Writer = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("nobody writes the counterexample ({error}): {finding}"));
    let written = serde_json::to_string(&written).expect("JSON");
    // A float that is whole may be written with and without its fraction.
    let same = |text: &str| crate::report::exact_text(&serde_json::from_str::<Value>(text).expect("JSON"));
    assert_eq!(same(&written), same(&text), "the writer writes it otherwise: {finding}");
    assert!(serde_json::from_str::<Reader>(&text).is_err(), "the reader reads it: {finding}");
}

/// The reader reads everything that was thought of, and what looks more like what people write.
fn reads_all<Writer: JsonType, Reader: JsonType>() {
    let writes = schema::<Writer>().writes;
    for value in Schema::new(&writes).variety() {
        let text = crate::report::exact_text(&value);
        let written: Writer = serde_json::from_str(&text).expect("a value that the writer writes");
        let written = serde_json::to_string(&written).expect("JSON");
        reads::<Reader>(&written);
        for real in (0..3).map(|number| realistic(&value, number)) {
            let Ok(written) = serde_json::from_value::<Writer>(real.clone()) else { continue };
            if serde_json::to_value(&written).is_ok_and(|written| written == real) {
                reads::<Reader>(&real.to_string());
            }
        }
    }
}

fn reads<Reader: JsonType>(text: &str) {
    if let Err(error) = serde_json::from_str::<Reader>(text) {
        panic!("the reader can't read {text}: {error}");
    }
}

/// The same with other texts, numbers and keys, and with more items. A writer may refuse it.
fn realistic(value: &Value, number: usize) -> Value {
    match value {
        Value::String(text) if text == "text" => Value::from(["결제 42 %", "a\"b\\c\n", " "][number]),
        Value::Number(one) if one.as_i64() == Some(1) => Value::from([42, 7, 3][number]),
        Value::Number(half) if half.as_f64() == Some(1.5) => Value::from([0.25, -27.5, 1e9 + 0.5][number]),
        Value::Array(items) => {
            let items = items.iter().map(|item| realistic(item, number));
            items.clone().chain(items.take(number)).collect()
        }
        Value::Object(fields) => {
            let field = |(name, inner): (&String, &Value)| {
                let name = if name == "key" { "주문/1" } else { name };
                (name.to_owned(), realistic(inner, number))
            };
            fields.iter().map(field).collect()
        }
        other => other.clone(),
    }
}
