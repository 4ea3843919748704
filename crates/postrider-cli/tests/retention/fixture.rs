//! A log of a test's own, and the binary on it.

use std::process::{Command, Stdio};
use std::time::Duration;

use postrider::store::{Lease, Settlement, Store, Subscription};
use postrider::{NewEvent, Payload, postgres, sqlite};
use postrider_testkit::postgres::Database;
use postrider_testkit::{Folder, Logged};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{AssertSqlSafe, PgPool};

const LONG: Duration = Duration::from_secs(600);

/// A database of its own and a folder; both go away, also when the test fails.
pub(crate) struct Fixture {
    pub(crate) folder: Folder,
    pub(crate) url: String,
    pub(crate) pool: Option<PgPool>,
    _database: Option<Database>,
}

impl Fixture {
    pub(crate) async fn postgres() -> Self {
        let database = Database::new().await;
        let url = database.url();
        let pool = PgPool::connect(&url).await.expect("connected");
        Self { folder: Folder::new(), url, pool: Some(pool), _database: Some(database) }
    }

    pub(crate) fn sqlite() -> Self {
        let folder = Folder::new();
        let url = format!("sqlite:{}", folder.path().join("shop.db").display());
        Self { folder, url, pool: None, _database: None }
    }

    /// Records events and settles them; each has an e-mail address in it.
    pub(crate) async fn deliver(&self, events: usize) {
        self.run(&["migrate"]).good();
        let event = |n: usize| {
            let payload = Payload::Json(format!("{{\"n\": {n}, \"email\": \"planted@example.org\"}}"));
            NewEvent::new("orders", "OrderPaid", "Order", (n % 7).to_string(), payload)
        };
        if let Some(pool) = &self.pool {
            let outbox = postgres::Outbox::connect(pool).await.expect("an outbox");
            let mut connection = pool.acquire().await.expect("a connection");
            let events: Vec<NewEvent> = (0..events).map(event).collect();
            outbox.record_all(&mut connection, &events).await.expect("recorded");
            settle(&outbox.store().await.expect("a store")).await;
        } else {
            let pool = self.file().await;
            let outbox = sqlite::Outbox::connect(&pool).await.expect("an outbox");
            for n in 0..events {
                outbox.record_outside_transaction(&event(n)).await.expect("recorded");
            }
            settle(&outbox.store()).await;
            pool.close().await;
        }
    }

    pub(crate) async fn file(&self) -> SqlitePool {
        let options = SqliteConnectOptions::new().filename(self.folder.path().join("shop.db"));
        SqlitePool::connect_with(options).await.expect("connected")
    }

    /// A number from the database; `{}` is what stands before the names of tables.
    pub(crate) async fn number(&self, text: &str) -> i64 {
        match &self.pool {
            Some(pool) => {
                let query = sqlx::query_scalar(AssertSqlSafe(text.replace("{}", "postrider.")));
                query.fetch_one(pool).await.expect(text)
            }
            None => {
                let pool = self.file().await;
                let query = sqlx::query_scalar(AssertSqlSafe(text.replace("{}", "postrider_")));
                let number = query.fetch_one(&pool).await.expect(text);
                pool.close().await;
                number
            }
        }
    }

    pub(crate) async fn left(&self) -> (i64, i64) {
        // In one look: a sweep may be under way.
        let both = self
            .number("select (select count(*) from {}event) * 1000000 + (select count(*) from {}archive)")
            .await;
        (both / 1_000_000, both % 1_000_000)
    }

    pub(crate) async fn execute(&self, text: &str) {
        match &self.pool {
            Some(pool) => {
                sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(pool).await.expect(text);
            }
            None => {
                let pool = self.file().await;
                sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&pool).await.expect(text);
                pool.close().await;
            }
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).env_clear().env("POSTRIDER_STORE_URL", &self.url).env("USER", "ada");
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) };
        assert!(!said.err.contains("panicked") && !said.err.contains("planted"), "{}", said.err);
        said
    }

    pub(crate) fn config(&self, name: &str, retention: &str) -> String {
        let path = self.folder.path().join(format!("{name}.toml"));
        let text = format!(
            "[relay]\nname = \"{name}\"\nlease = \"2s\"\n[http]\nlisten = \"off\"\n\
             [[subscription]]\nname = \"s\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n[retention]\n{retention}\n"
        );
        std::fs::write(&path, text).expect("the settings");
        path.display().to_string()
    }

    /// Starts a relay in a process of its own; it is killed with the test.
    pub(crate) fn relay(&self, name: &str, retention: &str) -> Logged {
        let config = self.config(name, retention);
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["relay", "--config", &config]).env_clear().env("POSTRIDER_STORE_URL", &self.url);
        Logged::start(&mut command, self.folder.path(), name)
    }
}

async fn settle(store: &dyn Store) {
    store.subscribe(&Subscription::new("s")).await.expect("subscribed");
    let mut lease: Lease = store.claim("s", "test", LONG).await.expect("claim").expect("a free lane");
    loop {
        let batch = store.read(&lease, &lease.position.clone(), 10_000).await.expect("read");
        if batch.is_idle() {
            break;
        }
        store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settled");
    }
    store.release(lease).await.expect("released");
}

pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        let out = self.good();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    #[track_caller]
    pub(crate) fn sentence(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert_eq!(self.err.trim_end().lines().count(), 1, "one sentence: {}", self.err);
        self.err
    }
}
