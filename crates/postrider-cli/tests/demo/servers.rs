//! The demo on servers: in a database or a schema of its own.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use postrider_testkit::postgres::Database;
use postrider_testkit::{Folder, address, cleanup};
use sqlx::{AssertSqlSafe, MySqlPool, PgPool};

use crate::MACHINE;
use crate::playing::{Playing, content, demo, row, text};

/// A user who may make the demo's databases, and nothing else. It goes with the test, and so do those that were made since.
struct Visitor {
    name: String,
    pool: MySqlPool,
    before: BTreeSet<String>,
}

impl Visitor {
    async fn new(name: &str) -> Self {
        let pool = MySqlPool::connect(&address::mysql()).await.expect("the server of the tests");
        let name = format!("demo_{name}_{}", std::process::id());
        let make = format!(
            "create user {name}@'%' identified by 'hush'; grant all on `postrider\\_demo\\_%`.* to {name}@'%'"
        );
        sqlx::raw_sql(AssertSqlSafe(make)).execute(&pool).await.expect("a user");
        let before = databases(&pool).await;
        Self { name, pool, before }
    }

    fn address(&self) -> String {
        let server = address::mysql();
        let (_, place) = server.rsplit_once('@').expect("a user in the address");
        let place = place.split('/').next().expect("a host");
        format!("mysql://{}:hush@{place}", self.name)
    }

    /// The databases that demos have made since.
    async fn made(&self) -> Vec<String> {
        databases(&self.pool).await.difference(&self.before).cloned().collect()
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let (name, before) = (self.name.clone(), std::mem::take(&mut self.before));
        cleanup::run(async move || {
            let Ok(pool) = MySqlPool::connect(&address::mysql()).await else { return };
            let mut drops = vec![format!("drop user {name}@'%'")];
            let made = databases(&pool).await;
            drops.extend(made.difference(&before).map(|made| format!("drop database {made}")));
            for drop in drops {
                let _ = sqlx::raw_sql(AssertSqlSafe(drop)).execute(&pool).await;
            }
        });
    }
}

async fn databases(pool: &MySqlPool) -> BTreeSet<String> {
    let all = sqlx::query_scalar(
        "select convert(schema_name using utf8mb4) from information_schema.schemata
         where schema_name like 'postrider\\_demo\\_%'",
    );
    all.fetch_all(pool).await.expect("databases").into_iter().collect()
}

/// The summary of a demo: every promise held, unless it was told to break the order of one customer.
#[track_caller]
fn assert_counted(said: &str, broken: bool) {
    assert_eq!(said.contains("Every promise held"), !broken, "{said}");
    let [recorded, ..] = row(said, "recorded");
    assert!(recorded > 100, "{said}");
    assert_eq!(row(said, "dead"), [0, 1, 0], "one address does not exist");
    assert_eq!(row(said, "delivered  "), [recorded, recorded - 1, recorded], "{said}");
    assert_eq!(row(said, "delivered again")[0], 0, "the books have an inbox");
    assert_eq!(row(said, "out of order"), [0, u64::from(broken), 0], "{said}");
    assert_eq!(row(said, "lost"), [0, 0, 0], "{said}");
}

/// One test, so that no other demo makes a database meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_mariadb_it_keeps_the_same_promises_in_a_database_of_its_own() {
    let _here = MACHINE.read().await;
    let folder = Folder::new();
    let visitor = Visitor::new("visitor").await;
    let address = visitor.address();
    let kept = folder.path().join("kept").display().to_string();
    let start = |arguments: &[&str]| {
        let mut command = demo(folder.path(), arguments);
        command.args(["--store", &address]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it runs")
    };
    let demos = [start(&[]), start(&["--keep", &kept]), start(&["--break", "order"])];
    for (broken, playing) in [false, false, true].into_iter().zip(demos) {
        let output = playing.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(i32::from(broken)), "{said}{}", text(&output.stderr));
        assert!(output.stderr.is_empty() && !said.contains("hush"), "{}", text(&output.stderr));
        assert!(said.contains("A shop on MariaDB") && said.contains("is killed"), "{said}");
        assert_counted(&said, broken);
    }
    let left = visitor.made().await;
    let [database] = left.as_slice() else { panic!("only what is to be kept is kept: {left:?}") };
    assert_eq!(content(&folder), [PathBuf::from(&kept)], "and one folder");
    let mut look = Command::new(env!("CARGO_BIN_EXE_postrider"));
    let looked =
        look.args(["status", "--store", &format!("{address}/{database}")]).output().expect("it runs");
    assert!(
        looked.status.success() && text(&looked.stdout).contains("warehouse"),
        "{}",
        text(&looked.stderr)
    );

    let mut playing = Playing::start_with(&folder, &["--store", &address]);
    playing.signal("INT");
    let (code, said) = playing.ended();
    assert!(
        code == Some(1) && said.contains("interrupted") && said.contains("the demo removed its database"),
        "{said}"
    );
    playing.no_relay_is_left();
    assert_eq!(visitor.made().await, left, "half a shop is removed");
}

/// The schemas in a database.
async fn schemas(url: &str) -> Vec<String> {
    let pool = PgPool::connect(url).await.expect("the server of the tests");
    let all = sqlx::query_scalar(
        "select nspname::text from pg_namespace where nspname !~ '^pg_|^information' order by 1",
    );
    let all = all.fetch_all(&pool).await.expect("schemas");
    pool.close().await;
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_postgresql_it_keeps_the_same_promises_in_a_schema_of_its_own() {
    let _here = MACHINE.read().await;
    let folder = Folder::new();
    let database = Database::new().await;
    let url = database.url();
    let kept = folder.path().join("kept").display().to_string();
    let start = |arguments: &[&str]| {
        let mut command = demo(folder.path(), arguments);
        command.args(["--store", &url]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it runs")
    };
    let demos = [
        start(&[]),
        start(&["--keep", &kept, "--schema", "kept"]),
        start(&["--break", "order", "--schema", "broken"]),
    ];
    for (broken, playing) in [false, false, true].into_iter().zip(demos) {
        let output = playing.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(i32::from(broken)), "{said}{}", text(&output.stderr));
        assert!(said.contains("A shop on PostgreSQL") && said.contains("is killed"), "{said}");
        assert_counted(&said, broken);
    }
    assert_eq!(schemas(&url).await, ["kept", "public"], "only what is to be kept is kept");
    let mut look = Command::new(env!("CARGO_BIN_EXE_postrider"));
    let looked = look.args(["status", "--store", &url, "--schema", "kept"]).output().expect("it runs");
    assert!(
        looked.status.success() && text(&looked.stdout).contains("warehouse"),
        "{}",
        text(&looked.stderr)
    );

    // One that is there is nobody's to play in, and stays as it is.
    let output = demo(folder.path(), &["--store", &url, "--schema", "kept"]).output().expect("it runs");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("the schema kept already exists"), "{said}");
    assert!(said.contains("choose another with --schema"), "{said}");
    assert_eq!(schemas(&url).await, ["kept", "public"]);

    let mut playing = Playing::start_with(&folder, &["--store", &url]);
    playing.signal("INT");
    let (code, said) = playing.ended();
    assert!(
        code == Some(1) && said.contains("interrupted") && said.contains("the demo removed its schema"),
        "{said}"
    );
    playing.no_relay_is_left();
    assert_eq!(schemas(&url).await, ["kept", "public"], "half a shop is removed");
}

#[test]
fn a_server_that_will_not_do_is_said_so_without_its_password() {
    let folder = Folder::new();
    let nobody = address::nobody();
    let away = format!("does not answer (host 127.0.0.1, port {}, database x)", nobody.port());
    for (address, code, part) in [
        (&*format!("mysql://root:hush@{nobody}"), 1, "does not answer"),
        (&*address::mysql().replace("root@", "nobody:hush@"), 1, "Access denied"),
        (&*format!("postgres://u:hush@{nobody}/x"), 1, away.as_str()),
        ("postgres://u:hu@sh@127.0.0.1/x", 2, "--store: the user or password contains an unescaped @"),
        (
            "oracle://u:hush@127.0.0.1/x",
            2,
            "--store must be postgres://user@host/database or mysql://user@host",
        ),
    ] {
        let output = demo(folder.path(), &["--store", address]).output().expect("it runs");
        let said = text(&output.stderr);
        assert!(
            output.status.code() == Some(code) && said.contains(part) && !said.contains("hush"),
            "{said}"
        );
        assert!(!said.contains("panicked") && content(&folder).is_empty(), "{said}");
    }
}
