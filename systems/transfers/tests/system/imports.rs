//! Domain and application know ports of their own alone.

use std::path::Path;

use story::imports::{OUTSIDE, lines_naming, naming};

/// Nothing of Postrider, sqlx, rdkafka, HTTP or the story is named inside, and what is planted is found.
#[test]
fn domain_and_application_name_nothing_of_the_outside() {
    for folder in ["src/domain", "src/application"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        assert_eq!(naming(&folder, OUTSIDE), [""; 0]);
        assert!(!naming(&folder, &["super", "crate"]).is_empty(), "its files are looked at");
    }
    let planted = "use super::ports::Fault;\nuse postrider::postgres::Outbox;\n";
    assert_eq!(lines_naming(planted, OUTSIDE), ["use postrider::postgres::Outbox;"]);
}
