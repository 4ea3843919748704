//! The built binary, as its users run it.

use std::process::{Command, Output};

fn postrider(arguments: &[&str], folder: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(arguments).env("TMPDIR", folder).output().expect("the binary runs")
}

/// A folder that goes with the test.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("postrider-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The figure of a line of the summary.
fn figure(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.trim_start().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no line {name:?} in\n{text}"));
    line.trim_start()[name.len()..].split_whitespace().next().expect("a figure").parse().expect("a number")
}

#[test]
fn the_demo_keeps_its_promises_and_counts_them() {
    let folder = Folder::new("demo");
    let output = postrider(&["demo"], &folder.0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let recorded = figure(&text, "recorded");
    assert_eq!(recorded, 480, "4 writers, 150 transactions each, one in five rolled back");
    assert_eq!(figure(&text, "receipts"), recorded, "each effect once");
    assert_eq!(figure(&text, "dead"), 1, "one address does not exist");
    assert!(figure(&text, "mails") >= recorded - 1);
    assert!(text.contains("there is no such address"), "{text}");
    assert_eq!((figure(&text, "lost"), figure(&text, "invented"), figure(&text, "out of order")), (0, 0, 0));
    assert!(text.contains("Every promise held"), "{text}");
    let kept = std::fs::read_dir(&folder.0).expect("the folder").count();
    assert_eq!(kept, 1, "the shop's database is kept, to look around");
}

#[test]
fn what_is_not_a_command_is_said_so() {
    let folder = Folder::new("usage");
    let output = postrider(&["dmeo"], &folder.0);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("'dmeo'") && said.contains("'demo'"), "{said}");
    assert_eq!(postrider(&[], &folder.0).status.code(), Some(2));
    let extra = postrider(&["demo", "extra"], &folder.0);
    assert_eq!(extra.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&extra.stderr).contains("'extra'"));
    let nowhere = postrider(&["demo"], std::path::Path::new("/dev/null"));
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("set TMPDIR"));
    let help = postrider(&["help"], &folder.0);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Run a small shop"));
}
