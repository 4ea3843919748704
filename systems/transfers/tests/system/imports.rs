//! Domain and application know ports of their own alone.

use std::path::Path;

use story::imports::{OUTSIDE, lines_naming, naming};

/// The other modules of this system.
const OUTER: [&str; 3] = ["adapters", "acts", "processes"];

/// Nothing of Postrider, sqlx, rdkafka, HTTP or the story is named inside, nor the adapters, the processes or the acts; what is planted
/// is found.
#[test]
fn domain_and_application_name_nothing_of_the_outside() {
    let words = [OUTSIDE, &OUTER].concat();
    for folder in ["src/domain", "src/application"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        assert_eq!(naming(&folder, &words), [""; 0]);
        assert!(!naming(&folder, &["super", "crate"]).is_empty(), "its files are looked at");
    }
    for planted in [
        "use postrider::postgres::Outbox;",
        "use crate::adapters::postgres::PgUnits;",
        "use crate::{domain, acts};",
        "use super::super::processes as outside;",
    ] {
        assert_eq!(lines_naming(&format!("use super::ports::Fault;\n{planted}"), &words), [planted]);
    }
}
