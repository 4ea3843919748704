//! What the inside of the ledger may name.

use std::fs;
use std::path::Path;

use postrider_testkit::Folder;
use story::imports::{OUTSIDE, lines_naming, naming};

/// The other modules of this system; `story` is among those of the outside.
const OUTER: [&str; 1] = ["adapters"];

/// The document's packages: domain and application import ports of their own alone.
#[test]
fn domain_and_application_name_nothing_of_the_outside() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let words = [OUTSIDE, &OUTER].concat();
    for inside in ["domain", "application"] {
        assert_eq!(naming(&source.join(inside), &words), [""; 0], "{inside}");
    }
    for planted in [
        "use crate::adapters::wire;",
        "use crate::{adapters::wire, domain::AccountId};",
        "    adapters::wire,",
        "use crate::{domain::AccountId, adapters};",
        "use {sqlx};",
    ] {
        assert_eq!(lines_naming(planted, &words).len(), 1, "{planted}");
    }
    let planted = Folder::new();
    let text = fs::read_to_string(source.join("domain/balance.rs")).expect("a file of the domain");
    planted.file("balance.rs", &format!("use sqlx::MySqlPool;\n{text}"));
    assert_eq!(naming(planted.path(), OUTSIDE).len(), 1, "a planted import is found");
}
