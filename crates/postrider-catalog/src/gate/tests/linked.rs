//! The gate with types and upcasters linked in.

use postrider_core::EventMapping;
use postrider_relay::Upcasters;
use serde::{Deserialize, Serialize};

use crate::{Catalog, Lock};

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Paid<T> {
    amount: T,
}

fn mapping<T: Serialize + 'static>(version: u32) -> EventMapping<Paid<T>> {
    EventMapping::new("OrderPaid", "Order", |_: &Paid<T>| "1".to_owned()).version(version)
}

/// serde_json reads an integer of 128 bits from text, and none from a value, which is what an upcaster returns.
#[test]
fn what_an_upcaster_returns_is_read_as_a_relay_reads_it() {
    let mut lock = Lock::new();
    lock.update(Catalog::new("shop").mapping(&mapping::<u128>(1)).file());
    let same = |payload: serde_json::Value| Ok::<_, std::convert::Infallible>(payload);
    let steps = || Upcasters::new().step("OrderPaid", 1, same);
    let report = Catalog::new("shop").mapping(&mapping::<u128>(2)).upcasters(steps()).check(&lock);
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert!(!report.passed() && finding.reason.contains("not readable after its upcasters"), "{report}");

    let mut lock = Lock::new();
    lock.update(Catalog::new("shop").mapping(&mapping::<u64>(1)).file());
    let report = Catalog::new("shop").mapping(&mapping::<u64>(2)).upcasters(steps()).check(&lock);
    assert_eq!(report.findings, []);
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Before {
    Card { number: String },
    Cash { till: u8 },
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Shadowed {
    Any { note: Option<String> },
    Card { number: String },
    Cash { till: u8 },
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Wide {
    Named { number: String },
    Both { number: String, holder: String },
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Narrow {
    Both { number: String, holder: String },
    Named { number: String },
}

fn of<T: Serialize + serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static>() -> Catalog {
    let mapping = EventMapping::new("OrderPaid", "Order", |_: &T| "1".to_owned());
    Catalog::new("shop").mapping(&mapping)
}

fn lost(before: &Catalog, after: &Catalog) -> Vec<String> {
    let mut lock = Lock::new();
    lock.update(before.file());
    let report = after.check(&lock);
    let is_lost = |finding: &&crate::Finding| finding.reason.contains("is lost: the type reads");
    report
        .findings
        .iter()
        .filter(is_lost)
        .map(|finding| format!("{}: {}", finding.severity, finding.sentence()))
        .collect()
}

/// An untagged enum takes the first alternative that fits.
#[test]
fn an_alternative_that_reads_what_another_wrote_is_a_warning_that_its_fields_are_lost() {
    let beginning = "warning: OrderPaid version 1: a new program on old events: field";
    assert_eq!(
        lost(&of::<Before>(), &of::<Shadowed>()),
        [
            format!(
                r#"{beginning} `number` is lost: the type reads {{"number":"text"}} and keeps {{"note":null}}"#
            ),
            format!(r#"{beginning} `till` is lost: the type reads {{"till":1}} and keeps {{"note":null}}"#),
        ]
    );
    // In another order, the alternative with fewer fields is the first.
    let holder =
        r#"`holder` is lost: the type reads {"holder":"text","number":"text"} and keeps {"number":"text"}"#;
    assert_eq!(lost(&of::<Narrow>(), &of::<Wide>()), [format!("{beginning} {holder}")]);
    for (before, after) in [(of::<Before>(), of::<Before>()), (of::<Narrow>(), of::<Narrow>())] {
        assert_eq!(lost(&before, &after), [""; 0]);
    }
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Totals {
    #[serde(alias = "amount")]
    total: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lines: Vec<u8>,
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Amounts {
    amount: u64,
    lines: Vec<u8>,
}

#[test]
fn what_is_kept_under_another_name_or_is_empty_is_not_lost() {
    assert_eq!(lost(&of::<Amounts>(), &of::<Totals>()), [""; 0]);
}
