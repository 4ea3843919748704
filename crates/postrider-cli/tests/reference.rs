//! The pages that are made from the code are as the code is.

use std::path::Path;
use std::process::Command;

fn made(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_postrider")).args(arguments).env_clear().output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn is_fresh(file: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let written = std::fs::read_to_string(&path).expect("the page");
    assert!(written == made(&["reference", page]), "{file} is not as the code is: run `cargo xtask docs`");
}

#[test]
fn the_command_line_reference_is_fresh() {
    is_fresh("docs/cli.md", "cli");
}

#[test]
fn the_configuration_reference_is_fresh() {
    is_fresh("docs/configuration.md", "configuration");
}

#[test]
fn every_page_of_xtask_docs_is_checked() {
    let pages: Vec<&str> = xtask::docs::PAGES.iter().map(|(file, _)| *file).collect();
    assert_eq!(pages, ["docs/cli.md", "docs/configuration.md"]);
}

/// What the reference describes is what `--help` says: no command is left out.
#[test]
fn every_command_is_in_the_reference_and_in_the_manual() {
    let help = made(&["--help"]);
    let (reference, manual, bash) =
        (made(&["reference", "cli"]), made(&["man"]), made(&["completions", "bash"]));
    let commands =
        help.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("commands");
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 10, "{help}");
    for name in names.into_iter().filter(|name| *name != "help") {
        assert!(reference.contains(&format!("## postrider {name}")), "{name} in the reference");
        // Its typesetter would take a bare hyphen for one that may be changed.
        let page = format!("postrider-{name}(1)").replace('-', "\\-");
        assert!(manual.contains(&page), "{name} in the manual:\n{manual}");
        assert!(bash.contains(name), "{name} in the completions");
    }
}

#[test]
fn manual_pages_are_written_into_a_folder() {
    let folder = std::env::temp_dir().join(format!("postrider-man-{}", postrider::Uuid::new_v4().simple()));
    made(&["man", "--into", &folder.display().to_string()]);
    let pages = std::fs::read_dir(&folder).expect("the folder").count();
    let requeue = folder.join("postrider-dead-requeue.1").is_file();
    let _ = std::fs::remove_dir_all(&folder);
    assert!(requeue && pages > 15, "{pages} pages");
    let output =
        Command::new(env!("CARGO_BIN_EXE_postrider")).args(["man", "--into", "/proc/nowhere"]).output();
    assert_eq!(output.expect("it runs").status.code(), Some(1));
}
