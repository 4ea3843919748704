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
