//! The inside of everbit names nothing of the outside.

use std::path::Path;

use story::imports::{OUTSIDE, lines_naming, naming};

/// E15: domain and application know ports of their own alone; what is planted is found.
#[test]
fn domain_and_application_name_nothing_of_the_outside() {
    for folder in ["src/domain", "src/application"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        assert_eq!(naming(&folder, OUTSIDE), [""; 0]);
        assert_eq!(naming(&folder, &["adapters", "stubs"]), [""; 0]);
    }
    assert_eq!(lines_naming("use postrider::Outbox;\nuse crate::domain::About;", OUTSIDE).len(), 1);
    for planted in ["use crate::adapters::bus::Kind;", "use crate::{adapters::bus::Kind, domain::About};"] {
        assert_eq!(lines_naming(planted, &["adapters"]).len(), 1, "{planted}");
    }
}
