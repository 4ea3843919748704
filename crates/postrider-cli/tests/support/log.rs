//! A log with something wrong in it: what operators' commands are for.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use postrider::store::{
    ArchiveOptions, DeliveryChange, DeliveryFailure, EventRef, Lease, LeaseStatus, RelayReport, RelayRun,
    Settlement, Store, Subscription, Sweep,
};
use postrider::{NewEvent, OnDead, Payload, Uuid, postgres, sqlite};
use sqlx::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

use super::{Database, Folder, postrider};

const LONG: Duration = Duration::from_secs(600);

enum Outbox {
    Postgres(postgres::Outbox),
    Sqlite(sqlite::Outbox),
}

/// A log that goes away, on PostgreSQL or SQLite.
pub struct Log {
    pub url: String,
    pub store: Arc<dyn Store>,
    pub log: Arc<dyn Store>,
    pub folder: Folder,
    outbox: Outbox,
    database: Option<Database>,
}

/// What a command did.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// What it wrote, if it succeeded.
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    /// The one sentence on standard error, with this exit code and nothing else.
    #[track_caller]
    pub fn sentence(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert!(self.out.is_empty(), "{}", self.out);
        assert_eq!(self.err.trim_end().lines().count(), 1, "one sentence: {}", self.err);
        self.err
    }

    /// The JSON that it wrote.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let out = self.good();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

impl Log {
    pub async fn postgres() -> Self {
        let database = Database::new().await;
        let pool = PgPool::connect(&database.url()).await.expect("connected");
        let outbox = postgres::Outbox::migrated(&pool).await.expect("migrated");
        let store = Arc::new(outbox.store().await.expect("a store"));
        Self {
            url: database.url(),
            log: store.clone(),
            store,
            folder: Folder::new(),
            outbox: Outbox::Postgres(outbox),
            database: Some(database),
        }
    }

    pub async fn sqlite() -> Self {
        let folder = Folder::new();
        let file = folder.path().join("shop.db");
        let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.expect("connected");
        let outbox = sqlite::Outbox::migrated(&pool).await.expect("migrated");
        let store = Arc::new(outbox.store());
        Self {
            url: format!("sqlite:{}", file.display()),
            log: store.clone(),
            store,
            folder,
            outbox: Outbox::Sqlite(outbox),
            database: None,
        }
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Said {
        let output = postrider(&self.url, arguments).stdin(Stdio::null()).output().expect("it runs");
        said(&output)
    }

    /// Runs a command on a terminal of its own, where somebody types an answer: everything that was shown there.
    pub fn on_a_terminal(&self, arguments: &[&str], answer: &str) -> String {
        let script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
        let inner = postrider(&self.url, arguments);
        let mut command = Command::new(xtask::python::ready().expect("a Python"));
        command.args(["-c", script]).arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().expect("it runs");
        running.stdin.take().expect("a pipe").write_all(answer.as_bytes()).expect("typed");
        let output = running.wait_with_output().expect("it ends");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Records an event of an order.
    pub async fn record(&self, order: &str, number: u32) -> Uuid {
        let payload = Payload::Json(format!("{{\"number\": {number}, \"card\": \"planted-payload\"}}"));
        self.record_event(&NewEvent::new("orders", "OrderPaid", "Order", order, payload)).await
    }

    pub async fn record_event(&self, event: &NewEvent) -> Uuid {
        match &self.outbox {
            Outbox::Postgres(outbox) => outbox.record_outside_transaction(event).await.expect("recorded"),
            Outbox::Sqlite(outbox) => outbox.record_outside_transaction(event).await.expect("recorded"),
        }
    }

    /// Records this many events, every other one of another type.
    pub async fn fill(&self, many: u32) {
        let event = |number: u32| {
            let kind = if number.is_multiple_of(2) { "Even" } else { "Odd" };
            NewEvent::new("orders", kind, "Order", (number % 100).to_string(), Payload::Json("{}".into()))
        };
        let events: Vec<NewEvent> = (0..many).map(event).collect();
        for part in events.chunks(10_000) {
            match &self.outbox {
                Outbox::Postgres(outbox) => {
                    let mut connection = outbox.pool().acquire().await.expect("a connection");
                    outbox.record_all(&mut connection, part).await.expect("recorded");
                }
                Outbox::Sqlite(outbox) => {
                    let mut tx = outbox.begin().await.expect("begun");
                    outbox.record_all(&mut tx, part).await.expect("recorded");
                    tx.commit().await.expect("committed");
                }
            }
        }
    }

    /// Marks an event as handled by a consumer.
    pub async fn handled(&self, consumer: &str, event: Uuid) {
        let first = match &self.outbox {
            Outbox::Postgres(outbox) => {
                let mut connection = outbox.pool().acquire().await.expect("a connection");
                outbox.inbox(consumer).first_time(&mut connection, event).await
            }
            Outbox::Sqlite(outbox) => {
                let mut tx = outbox.begin().await.expect("begun");
                let first = outbox.inbox(consumer).first_time(&mut tx, event).await;
                tx.commit().await.expect("committed");
                first
            }
        };
        assert!(first.expect("marked"), "for the first time");
    }

    /// Claims a lane, as a relay does.
    pub async fn claim(&self, subscription: &str) -> Lease {
        let lease = self.store.claim(subscription, "relay-1", LONG).await.expect("claim");
        lease.expect("a free lane")
    }

    /// Makes a relay known that has these subscriptions, and holds no lane.
    pub async fn run_by(&self, relay: &str, subscriptions: &[&str]) {
        let run = |name: &&str| RelayRun { subscription: (*name).to_owned(), ..RelayRun::default() };
        let report = RelayReport {
            id: Uuid::now_v7(),
            name: relay.to_owned(),
            host: "shop-1".to_owned(),
            process: 4711,
            version: "0.1.0".to_owned(),
            runs: subscriptions.iter().map(run).collect(),
        };
        self.store.heartbeat(&report).await.expect("a heartbeat");
    }

    /// Reads all there is and settles it, with what failed; the lane stays held.
    pub async fn settle(&self, lease: &mut Lease, failed: impl Fn(&str, EventRef) -> Option<DeliveryChange>) {
        let batch = self.store.read(lease, &lease.position.clone(), 1000).await.expect("read");
        let mut settlement = Settlement::of(&batch);
        for read in &batch.events {
            settlement.deliveries.extend(failed(&read.event.aggregate_id, (&read.event).into()));
        }
        let status = self.store.settle(lease, &settlement).await.expect("settle");
        assert_eq!(status, LeaseStatus::Held);
    }
}

pub fn said(output: &Output) -> Said {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) };
    assert!(!said.err.contains("panicked"), "{}", said.err);
    said
}

/// A log with everything in it that goes wrong.
pub struct Mess {
    pub log: Log,
    /// Delivered to all long ago.
    pub archived: Uuid,
    /// Delivered to `mail`.
    pub done: Uuid,
    /// Failed twice for `mail`.
    pub retrying: Uuid,
    /// Behind it.
    pub waiting: Uuid,
    /// Given up for `mail`, with two of its key behind it.
    pub dead: Uuid,
    pub behind: [Uuid; 2],
    /// Recorded after all that.
    pub pending: Uuid,
    lease: Lease,
}

impl Mess {
    /// `mail` is held by `relay-1` and has a bit of everything; `resting` is paused; `growing` is to have three lanes.
    pub async fn new(log: Log) -> Self {
        let hold = |name: &str| Subscription::new(name).on_dead(OnDead::Hold);
        log.store.subscribe(&hold("mail")).await.expect("subscribe");
        let archived = log.record("old", 0).await;
        let mut lease = log.claim("mail").await;
        log.settle(&mut lease, |_, _| None).await;
        let sweep =
            Sweep::Archive { older_than: Duration::ZERO, limit: 10, archiving: ArchiveOptions::default() };
        assert_eq!(log.store.sweep(&sweep).await.expect("sweep").taken, 1);

        let done = log.record("fine", 1).await;
        let retrying = log.record("slow", 2).await;
        let waiting = log.record("slow", 3).await;
        let dead = log.record("gone", 4).await;
        let behind = [log.record("gone", 5).await, log.record("gone", 6).await];
        for (name, lanes) in [("resting", 1), ("growing", 1)] {
            log.store.subscribe(&Subscription::new(name).lanes(lanes)).await.expect("subscribe");
        }
        let seen = std::sync::Mutex::new(std::collections::HashSet::new());
        log.settle(&mut lease, |order, id| {
            let first = seen.lock().expect("a lock").insert(order.to_owned());
            let failure = |code: &str, what: &str| DeliveryFailure::new(code, what);
            match order {
                "slow" if first => Some(DeliveryChange::retrying(
                    id,
                    2,
                    LONG,
                    failure("timeout", "the shop\ndoes not answer"),
                )),
                "gone" if first => {
                    Some(DeliveryChange::dead(id, 3, failure("rejected", "there is no such address")))
                }
                "slow" | "gone" => Some(DeliveryChange::waiting(id)),
                _ => None,
            }
        })
        .await;
        let pending = log.record("late", 7).await;
        log.log.pause("resting", Some(&postrider::store::Pause::by("ada"))).await.expect("paused");
        let mut growing = log.claim("growing").await;
        log.settle(&mut growing, |_, _| None).await;
        log.store.relane("growing", 3).await.expect("begun");
        Self { log, archived, done, retrying, waiting, dead, behind, pending, lease }
    }

    /// Whoever holds `mail` gives it back.
    pub async fn free(&self) {
        self.log.store.release(self.lease.clone()).await.expect("released");
    }
}

/// Makes each test one on PostgreSQL and one on SQLite.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::support::log::Log::postgres().await).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::support::log::Log::sqlite().await).await;
            })+
        }
    };
}
