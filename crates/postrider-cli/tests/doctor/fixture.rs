//! A database and a folder of a test's own, and what the doctor says of them.

use std::process::Command;

use postrider_testkit::Folder;
use postrider_testkit::postgres::Database;
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool};

/// A database on the server of the tests, and a folder; both go away with the test, however it ends.
pub(crate) struct Fixture {
    pub(crate) url: String,
    pub(crate) pool: PgPool,
    folder: Folder,
    _database: Database,
}

impl Fixture {
    /// With nothing in it.
    pub(crate) async fn empty() -> Self {
        let database = Database::new().await;
        let url = database.url();
        let pool = PgPool::connect(&url).await.expect("connected");
        Self { url, pool, folder: Folder::new(), _database: database }
    }

    /// With a schema.
    pub(crate) async fn new() -> Self {
        let fixture = Self::empty().await;
        assert!(fixture.command(&["migrate"]).output().expect("it runs").status.success());
        fixture
    }

    pub(crate) async fn run(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await.expect(sql);
    }

    /// Records an event, as any language does.
    pub(crate) async fn record(&self, stream: &str, event_type: &str) {
        let sql = "select postrider.record($1, $2, 'Order', '7', '{\"planted\": \"payload\"}'::json)";
        sqlx::query(sql).bind(stream).bind(event_type).execute(&self.pool).await.expect("recorded");
    }

    /// The binary with these arguments, on this database.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).env_clear().env("POSTRIDER_STORE_URL", &self.url);
        command
    }

    /// A file of settings.
    pub(crate) fn settings(&self, text: &str) -> String {
        let name = format!("{}.toml", postrider::Uuid::new_v4());
        self.folder.file(&name, text).display().to_string()
    }

    /// What the doctor finds, with these settings.
    pub(crate) fn doctor(&self, settings: &str) -> Diagnosis {
        let file = self.settings(settings);
        diagnosis(self.command(&["doctor", "--json", "--config", &file]))
    }
}

/// What the doctor said.
pub(crate) struct Diagnosis {
    report: Value,
}

/// Runs the doctor. Its exit code says whether anything is bad, as its verdict does.
pub(crate) fn diagnosis(mut command: Command) -> Diagnosis {
    let output = command.output().expect("it runs");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(error.is_empty(), "{error}");
    for secret in ["planted", "hush"] {
        assert!(!said.contains(secret), "{said}");
    }
    let report: Value = serde_json::from_str(&said).expect(&said);
    assert_eq!(output.status.code(), Some(i32::from(report["verdict"] == "bad")), "{said}");
    Diagnosis { report }
}

impl Diagnosis {
    pub(crate) fn verdict(&self) -> &str {
        self.report["verdict"].as_str().expect("a verdict")
    }

    /// What was found about this: the verdict, and what was found with what to do.
    pub(crate) fn about(&self, about: &str) -> (&str, String) {
        let findings = self.report["findings"].as_array().expect("findings");
        let finding = findings.iter().find(|finding| finding["about"] == about);
        let finding = finding.unwrap_or_else(|| panic!("nothing about {about}: {findings:#?}"));
        let verdict = finding["verdict"].as_str().expect("a verdict");
        let (what, remedy) = (finding["what"].as_str().expect("a sentence"), finding["remedy"].as_str());
        assert!(verdict != "ok" || remedy.is_none(), "what is well needs no remedy: {finding}");
        (verdict, format!("{what} -> {}", remedy.unwrap_or_default()))
    }

    pub(crate) fn has(&self, about: &str) -> bool {
        self.report["findings"].as_array().expect("findings").iter().any(|finding| finding["about"] == about)
    }

    /// Asserts that this is found of it.
    pub(crate) fn assert(&self, about: &str, verdict: &str, words: &[&str]) {
        let (found, text) = self.about(about);
        assert_eq!(found, verdict, "{about}: {text}");
        for word in words {
            assert!(text.contains(word), "{about}: {word:?} is missing in {text}");
        }
    }
}
