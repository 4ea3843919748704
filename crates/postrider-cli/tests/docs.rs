//! The documents: what they link to is there, what they quote is so, and what they say to type is understood.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A document: where it lies, and what it says.
struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path, text }
    }

    fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }

    /// What stands outside of code: links and names are looked for there only.
    fn prose(&self) -> String {
        let parts = self.text.split("```").enumerate();
        parts.filter(|(index, _)| index % 2 == 0).map(|(_, part)| part).collect()
    }

    /// The fenced blocks of a language, each with what stands before it.
    fn blocks(&self, language: &str) -> Vec<(&str, &str)> {
        let parts: Vec<&str> = self.text.split("```").collect();
        let block = |pair: &[&'_ str]| pair[1].strip_prefix(language)?.strip_prefix('\n').map(str::len);
        let found = parts.windows(2).step_by(2).filter(|pair| block(pair).is_some());
        found.map(|pair| (pair[0], &pair[1][language.len() + 1..])).collect()
    }

    /// All fenced blocks but pictures, which are translated as well.
    fn code(&self) -> Vec<&str> {
        let fenced = self.text.split("```").skip(1).step_by(2);
        fenced.filter(|block| !block.starts_with("mermaid\n")).collect()
    }

    /// The English page, where this is a translation of one: `README.ko.md` is one of `README.md`.
    fn original(&self) -> Option<Page> {
        let path = self.path.to_str()?.strip_suffix(".ko.md")?;
        Some(Page::read(PathBuf::from(format!("{path}.md"))))
    }

    /// Where its links lead.
    fn links(&self) -> Vec<String> {
        let prose = self.prose();
        prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
    }

    /// The anchors of its headings, as GitHub makes them.
    fn anchors(&self) -> Vec<String> {
        let prose = self.prose();
        let headings = prose.lines().filter_map(|line| line.strip_prefix('#'));
        let anchor = |heading: &str| -> String {
            let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            heading.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
        };
        headings.map(anchor).collect()
    }
}

/// README.md and its neighbours, everything in docs/, and the page of the examples.
fn pages() -> Vec<Page> {
    let markdown = |folder: PathBuf| {
        let entries =
            std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect::<Vec<_>>()
    };
    let folders = [root(), root().join("docs"), root().join("examples")];
    let paths = folders.map(markdown).concat();
    paths.into_iter().map(Page::read).collect()
}

fn page(name: &str) -> Page {
    Page::read(root().join(name))
}

#[test]
fn every_link_within_the_repository_leads_somewhere() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in pages() {
        for link in page.links().iter().filter(|link| !link.contains("://")) {
            checked += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let there = match path {
                "" => page.path.clone(),
                path => page.path.parent().expect("a folder").join(path),
            };
            let leads = there.exists()
                && (anchor.is_empty() || Page::read(there).anchors().iter().any(|a| a == anchor));
            if !leads {
                wrong.push(format!("{}: {link}", page.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "these lead nowhere:\n{}", wrong.join("\n"));
    assert!(checked > 50, "only {checked} links were found");
}

#[test]
fn every_document_is_found_from_the_readme() {
    let readme = page("README.md").links();
    let index = page("docs/README.md").links();
    assert!(readme.contains(&"docs/README.md".to_owned()) || readme.contains(&"docs".to_owned()));
    for page in pages() {
        let name = page.name();
        let Some(of_docs) = name.strip_prefix("docs/") else { continue };
        assert!(of_docs == "README.md" || index.contains(&of_docs.to_owned()), "nothing links to {name}");
    }
}

/// A name of a test, as the documents write it.
fn is_test(name: &str) -> bool {
    name.matches('_').count() >= 3
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let page = page("docs/guarantees.md");
    let prose = page.prose();
    let (mut file, mut found) = (None, 0);
    // Names belong to the file that was linked to last.
    for (index, part) in prose.split('`').enumerate() {
        if index % 2 == 0 {
            let links = part.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            if let Some(link) = links.filter(|link| link.ends_with(".rs")).last() {
                let path = root().join("docs").join(link);
                file = Some((link.to_owned(), std::fs::read_to_string(&path).expect(link)));
            }
        } else if is_test(part) {
            let (link, text) = file.as_ref().unwrap_or_else(|| panic!("no file is named before {part}"));
            let there = [format!("fn {part}("), format!("fn {part}<")].iter().any(|f| text.contains(f));
            assert!(there, "{link} has no {part}");
            found += 1;
        }
    }
    assert!(found > 50, "only {found} tests are named");
    for heading in prose.split("\n### ").skip(1) {
        let section = heading.split("\n## ").next().unwrap_or(heading);
        let name = section.lines().next().unwrap_or_default();
        assert!(section.split('`').any(is_test), "no test is named for {name:?}");
    }
}

/// The Rust of a folder, all of it.
fn rust_in(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let text = |path: PathBuf| match path.is_dir() {
        true => rust_in(&path),
        false if path.extension().is_some_and(|extension| extension == "rs") => Page::read(path).text,
        false => String::new(),
    };
    entries.map(text).collect()
}

#[test]
fn every_test_that_the_architecture_names_exists() {
    let prose = page("ARCHITECTURE.md").prose();
    let named: Vec<&str> = prose.split('`').skip(1).step_by(2).filter(|name| is_test(name)).collect();
    let rust = rust_in(&root().join("crates"));
    for name in &named {
        let there = [format!("fn {name}("), format!("fn {name}<")].iter().any(|f| rust.contains(f));
        assert!(there, "no test is named {name}");
    }
    assert!(named.len() > 40, "only {} tests are named", named.len());
}

#[test]
fn what_is_quoted_stands_in_its_file() {
    let mut quoted = 0;
    for page in pages() {
        let parts: Vec<&str> = page.text.split("```").collect();
        for pair in parts.windows(2).step_by(2) {
            let before = pair[0].trim_end().lines().last().unwrap_or_default();
            let Some(path) = before.strip_prefix("<!-- from ").and_then(|rest| rest.strip_suffix(" -->"))
            else {
                continue;
            };
            let (_, code) = pair[1].split_once('\n').expect("a block");
            let file = std::fs::read_to_string(root().join(path)).expect(path);
            assert!(file.contains(code.trim_end()), "{} quotes what {path} does not say", page.name());
            quoted += 1;
        }
    }
    assert!(quoted >= 5, "only {quoted} quotations were found");
}

/// What stands for a secret: it has the form of PagerDuty's.
const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn postrider() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.env_clear().current_dir(root());
    command
}

#[test]
fn every_settings_file_that_is_shown_is_understood() {
    let folder = std::env::temp_dir().join(format!("postrider-docs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("postrider.toml");
    let mut shown = 0;
    for page in pages() {
        for (_, block) in
            page.blocks("toml").into_iter().filter(|(_, block)| !block.contains("[dependencies]"))
        {
            std::fs::write(&file, block).expect("written");
            let mut check = postrider();
            for name in block.split("\"env:").skip(1).filter_map(|rest| rest.split('"').next()) {
                let value = match name {
                    "DATABASE_URL" => "postgres://localhost/shop",
                    name if name.ends_with("_URL") => "https://example.com/x",
                    _ => SECRET,
                };
                check.env(name, value);
            }
            let output = check.args(["config", "check", "--config"]).arg(&file).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{}: {said}\n{block}", page.name());
            shown += 1;
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(shown >= 4, "only {shown} were found");
}

/// What a reader copies compiles: each page with Rust in it is compiled by the doctests of the library, whole and as it stands.
/// Translations are not: they have the code of their originals.
#[test]
fn every_line_of_rust_in_the_documents_is_compiled() {
    let library = std::fs::read_to_string(root().join("crates/postrider/src/lib.rs")).expect("the library");
    let mut found = 0;
    for page in pages().into_iter().filter(|page| page.original().is_none()) {
        let fences = page.text.lines().filter(|line| line.starts_with("```rust"));
        for fence in fences {
            assert!(["```rust", "```rust,no_run"].contains(&fence), "{}: {fence}", page.name());
            found += 1;
        }
        for (_, block) in page.blocks("rust").into_iter().chain(page.blocks("rust,no_run")) {
            let is_hidden = |line: &&str| line.trim() == "#" || line.trim_start().starts_with("# ");
            assert_eq!(
                block.lines().find(is_hidden),
                None,
                "{}: a line that a reader does not see",
                page.name()
            );
            let include = format!("include_str!(\"../../../{}\")", page.name());
            assert!(library.contains(&include), "{} is not compiled: {include}", page.name());
        }
    }
    assert_eq!(
        found, 10,
        "of README.md, catalog.md, getting-started.md, handlers.md, http.md, kafka.md and testing.md"
    );
}

/// A translation shows the same code, byte for byte, and leads to its original and back.
#[test]
fn every_translation_has_the_code_of_its_original() {
    let mut found = 0;
    for page in pages() {
        let Some(original) = page.original() else { continue };
        found += 1;
        assert_eq!(page.code(), original.code(), "{} and {}", page.name(), original.name());
        assert!(!page.code().is_empty(), "{} shows no code", page.name());
        let file = |page: &Page| page.path.file_name().expect("a file").display().to_string();
        assert!(page.links().contains(&file(&original)), "{} does not name its original", page.name());
        assert!(original.links().contains(&file(&page)), "{} does not name its translation", original.name());
    }
    assert_eq!(found, 2, "README.ko.md and getting-started.ko.md");
}

/// Every publisher that is shown can be started by what is shown beside it.
#[test]
fn every_publisher_has_the_commands_that_start_it() {
    let page = page("docs/getting-started.md");
    let shown: String = page.blocks("sh").into_iter().map(|(_, block)| block).collect();
    let mut found = 0;
    for folder in ["java", "node", "python"] {
        let folder = root().join("examples/publishers").join(folder);
        for file in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            if file.is_file()
                && file
                    .extension()
                    .is_some_and(|kind| ["java", "mjs", "py"].iter().any(|known| kind == *known))
            {
                let name = file.strip_prefix(root()).expect("in the repository").display().to_string();
                assert!(shown.contains(&format!(" {name} ")), "nothing starts {name}");
                found += 1;
            }
        }
    }
    assert_eq!(found, 4);
    for path in shown.split_whitespace().filter(|word| word.starts_with("examples/")) {
        assert!(root().join(path).exists(), "{path} is not there");
    }
    for part in [
        "npm install --prefix examples/publishers/node pg",
        "\"jdbc:postgresql://localhost/shop?user=",
        "sqlite:shop.db",
    ] {
        assert!(shown.contains(part), "{part} is not shown");
    }
    let driver = format!("postgresql/{0}/postgresql-{0}.jar", xtask::jdbc::DRIVER.2);
    assert!(shown.contains(&driver), "the driver of the tests is {driver}");
}

/// The words of a command, as a shell would have them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted && word.is_empty() => break,
            ' ' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[test]
fn every_command_that_is_shown_exists_with_its_flags() {
    let (mut shown, mut wrong) = (0, Vec::new());
    for page in pages() {
        for line in page.blocks("sh").into_iter().flat_map(|(_, block)| block.lines()) {
            let arguments = match words(line) {
                words if words.first().is_some_and(|word| word == "postrider") => words[1..].to_vec(),
                // Without a package, it is the binary.
                words
                    if words.starts_with(&["cargo".into(), "run".into()])
                        && !words.contains(&"-p".into()) =>
                {
                    words.split(|word| word == "--").nth(1).unwrap_or_default().to_vec()
                }
                _ => continue,
            };
            // It is parsed up to the request for help: an unknown command, flag or value is an error before it.
            let output = postrider().args(&arguments).arg("--help").output().expect("it runs");
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                wrong.push(format!("{}: {line}\n  {}", page.name(), said.lines().next().unwrap_or_default()));
            }
            shown += 1;
        }
    }
    assert!(wrong.is_empty(), "these are not understood:\n{}", wrong.join("\n"));
    assert!(shown >= 5, "only {shown} were found");
}
