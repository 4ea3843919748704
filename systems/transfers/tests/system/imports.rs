//! Domain and application know ports of their own alone.

use std::path::Path;

use story::imports::{OUTSIDE, lines_naming, naming};

/// The other modules of this system.
const OUTER: [&str; 3] = ["adapters", "acts", "processes"];

/// The lines of a text with one of the words, comments aside: also within braces, where no `::` has to follow.
fn lines_with(text: &str, words: &[&str]) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let with = |line: &&str| {
        let mut found = line.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
        found.any(|word| words.contains(&word))
    };
    code.filter(with).map(|line| line.trim().to_owned()).collect()
}

/// The Rust files of a folder.
fn texts(folder: &Path) -> Vec<String> {
    let paths = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    paths.map(|path| std::fs::read_to_string(path).expect("a text, and no folder")).collect()
}

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

/// Nothing of the adapters, the processes or the acts is named inside, however it is written; what is planted is found.
#[test]
fn domain_and_application_name_nothing_of_the_outer_modules() {
    for folder in ["src/domain", "src/application"] {
        let texts = texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
        assert!(!lines_with(&texts.join("\n"), &["use"]).is_empty(), "its files are looked at");
        assert_eq!(lines_with(&texts.join("\n"), &OUTER), [""; 0], "{folder}");
    }
    for planted in [
        "use crate::adapters::postgres::PgUnits;",
        "use crate::{adapters::postgres::PgUnits, domain::Account};",
        "use crate::{domain, acts};",
        "use super::super::processes as outside;",
        "adapters,",
    ] {
        assert_eq!(lines_with(&format!("// adapters\n{planted}"), &OUTER), [planted]);
    }
    assert_eq!(lines_with("let contacts = transactions; // acts", &OUTER), [""; 0]);
}
