//! The inside of everbit names nothing of the outside.

use std::path::Path;

use story::imports::{OUTSIDE, lines_naming, naming};

/// The other modules of this system; `story` is among those of the outside.
const OUTER: [&str; 2] = ["adapters", "stubs"];

/// E15: domain and application know ports of their own alone; what is planted is found.
#[test]
fn domain_and_application_name_nothing_of_the_outside() {
    let words = [OUTSIDE, &OUTER].concat();
    for folder in ["src/domain", "src/application"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        assert_eq!(naming(&folder, &words), [""; 0]);
    }
    assert_eq!(lines_naming("use postrider::Outbox;\nuse crate::domain::About;", &words).len(), 1);
    for planted in [
        "use crate::adapters::bus::Kind;",
        "use crate::{adapters::bus::Kind, domain::About};",
        "use crate::{domain::About, stubs};",
    ] {
        assert_eq!(lines_naming(planted, &words).len(), 1, "{planted}");
    }
}
