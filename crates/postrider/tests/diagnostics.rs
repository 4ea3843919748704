//! What the compiler says of a program that lacks something: it names the type, and says what to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that goes away.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const HEAD: &str = "#![allow(dead_code, unused)]
use postrider::sqlite::{Outbox, Tx};
use postrider::{Context, Failure, Received, Relay};
struct Plain { order: i64 }
struct Whole { order: i64 }
";

/// The libraries that this test was built with: a program is compiled against the newest that fits it.
fn libraries() -> (PathBuf, Vec<PathBuf>) {
    let program = std::env::current_exe().expect("this program");
    let folder = program.parent().expect("its folder").to_owned();
    let entries = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("libpostrider-") && name.ends_with(".rlib")
    };
    let mut found: Vec<PathBuf> = entries.filter(is_ours).collect();
    found.sort_by_key(|path| std::cmp::Reverse(path.metadata().and_then(|data| data.modified()).ok()));
    assert!(!found.is_empty(), "no library in {}", folder.display());
    (folder, found)
}

fn compiled(source: &Path, library: &Path, dependencies: &Path, out: &Path) -> Output {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"]).arg(out);
    command.arg("--extern").arg(format!("postrider={}", library.display()));
    command.arg("-L").arg(format!("dependency={}", dependencies.display())).arg(source);
    command.output().expect("a compiler")
}

/// A program whose relay has a subscription with this handler.
fn on(handler: &str, give: &str) -> String {
    format!("{handler}\nfn g(outbox: &Outbox) {{ Relay::new(outbox).subscribe(\"s\", |s| {give}); }}")
}

/// Programs, and what is said of each.
fn cases() -> [(String, &'static [&'static str]); 8] {
    [
        (
            "async fn f(outbox: &Outbox, tx: &mut Tx) { outbox.record(tx, &Plain { order: 7 }).await; }"
                .to_owned(),
            &[
                "`Plain` can't be recorded: it is not an event",
                "#[derive(serde::Serialize, serde::Deserialize, postrider::Event)]",
            ],
        ),
        (
            on("async fn f(event: Received<Plain>) -> Result<(), Failure> { Ok(()) }", "s.on(f)"),
            &["`Plain` is not an event: it does not implement `Event`"],
        ),
        (
            on("async fn f(event: Received<Plain>) -> Result<(), Failure> { Ok(()) }", "s.on_type(\"T\", f)"),
            &[
                "`Plain` can't be received by a handler: it does not implement `serde::Deserialize`",
                "#[derive(serde::Deserialize)]",
            ],
        ),
        (
            on("fn f(event: Received<String>) -> Result<(), Failure> { Ok(()) }", "s.on_type(\"T\", f)"),
            &["is not a handler", "a handler is an async function or closure"],
        ),
        (
            on(
                "async fn f(event: Received<String>, tx: postrider::postgres::Tx) -> Result<(), Failure> { Ok(()) }",
                "s.on_type(\"T\", f)",
            ),
            &["is not a handler", "a `Tx` of the store that its relay is on"],
        ),
        (
            on(
                "async fn f(event: Received<String>) -> Result<i64, Failure> { Ok(1) }",
                "s.on_type(\"T\", f)",
            ),
            &["is not a handler", "returns `Result<(), E>`"],
        ),
        (on("", "s.sink(7)"), &["`{integer}` is not a sink", "whose closure is not async"]),
        (
            "fn g(pool: &String) { Relay::new(pool); }".to_owned(),
            &["`String` is not an outbox", "Outbox::migrated(&pool).await?"],
        ),
    ]
}

#[test]
fn a_type_that_lacks_a_trait_is_named_with_what_to_do() {
    let folder = Folder(std::env::temp_dir().join(format!("postrider-diagnostics-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let (dependencies, libraries) = libraries();
    let source = folder.0.join("program.rs");
    let compile = |body: &str, library: &Path| {
        std::fs::write(&source, format!("{HEAD}{body}")).expect("written");
        compiled(&source, library, &dependencies, &folder.0)
    };
    // The control: without a mistake it compiles. What an earlier build left behind may not.
    let right = "async fn f(event: Received<String>) -> Result<(), Failure> { Ok(()) }
        fn g(outbox: &Outbox) { Relay::new(outbox).subscribe(\"s\", |s| s.on_type(\"T\", f)); }";
    let library = libraries.iter().find(|library| compile(right, library).status.success());
    let library = library
        .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&compile(right, &libraries[0]).stderr)));
    for (body, words) in cases() {
        let output = compile(&body, library);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{body}");
        for word in words {
            assert!(said.contains(word), "{word:?} is missing for\n{body}\n{said}");
        }
    }
}
