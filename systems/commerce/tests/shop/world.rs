//! A database of a test's own, topics of its own on the shared broker, and the processes on them.

use std::process::Command;
use std::time::Duration;

use commerce::adapters::consumers::Settings;
use commerce::adapters::mapping;
use commerce::adapters::postgres::{PgUnits, migrate};
use commerce::domain::DomainEvent;
use commerce::domain::event::{
    LikeCanceledEventV1, LikeCreatedEventV1, OrderPaidEventV1, ProductViewedEventV1, StockDepletedEventV1,
};
use commerce::processes::settings::relay_with;
use postrider::Uuid;
use postrider::postgres::Outbox;
use postrider_testkit::postgres::Database;
use postrider_testkit::{Folder, Logged, address, unique, until};
use sqlx::{AssertSqlSafe, PgPool};

use crate::topic::Topic;

/// All four topics.
pub(crate) const TOPICS: [&str; 4] = ["order-events", "like-events", "product-events", "stock-events"];

pub(crate) struct World {
    pub(crate) pool: PgPool,
    pub(crate) outbox: Outbox,
    pub(crate) brokers: String,
    pub(crate) prefix: String,
    pub(crate) folder: Folder,
    database: Database,
}

impl World {
    /// A shop whose topics are on the shared broker: these, with three partitions each, and their topics for dead letters.
    pub(crate) async fn new(topics: &[&str]) -> Self {
        let world = Self::on(&address::kafka()).await;
        world.create(topics);
        world
    }

    /// A shop on these brokers, without topics.
    pub(crate) async fn on(brokers: &str) -> Self {
        let database = Database::new().await;
        let pool = PgPool::connect_with(database.options()).await.expect("a connection");
        let outbox = migrate(&pool).await.expect("tables");
        let prefix = unique("c").chars().take(12).collect::<String>() + "-";
        Self { pool, outbox, brokers: brokers.to_owned(), prefix, folder: Folder::new(), database }
    }

    /// Creates topics with their topics for dead letters.
    pub(crate) fn create(&self, topics: &[&str]) {
        let port: u16 = self.brokers.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let names: Vec<(String, u16)> = topics
            .iter()
            .flat_map(|topic| [(self.name(topic), 3), (self.name(&format!("{topic}.DLT")), 1)])
            .collect();
        let names: Vec<(&str, u16)> = names.iter().map(|(name, number)| (name.as_str(), *number)).collect();
        xtask::kafka::topics::create(port, &names, &[]).expect("topics");
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        xtask::kafka::topics::wait_until_complete(port, &names).expect("topics with leaders");
    }

    /// The name of a topic or a group of this shop.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(crate) fn topic(&self, name: &str) -> Topic {
        Topic::new(&self.brokers, &self.name(name))
    }

    pub(crate) fn units(&self) -> PgUnits {
        PgUnits::new(self.outbox.clone(), mapping::json)
    }

    /// The consumers' settings, with short times.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            prefix: self.prefix.clone(),
            retry_interval: Duration::from_millis(100),
            session_timeout: Duration::from_secs(6),
            ..Settings::new(&self.brokers)
        }
    }

    /// The relay's file for this shop, with short times and some changes more.
    pub(crate) fn relay_file(&self, name: &str, changes: &[(&str, &str)]) -> String {
        let topic = format!("topic = \"{}{{domain}}-events\"", self.prefix);
        let named = format!("[relay]\nname = \"{name}\"");
        let short = [
            ("topic = \"{domain}-events\"", topic.as_str()),
            ("[relay]", &named),
            ("poll_interval = \"1s\"", "poll_interval = \"100ms\""),
            ("lease = \"15s\"", "lease = \"5s\""),
            ("send_timeout = \"5s\"", "send_timeout = \"2s\""),
            ("longest_pause = \"10s\"", "longest_pause = \"300ms\""),
        ];
        let text = relay_with(&[&short[..], changes].concat());
        self.folder.file(&format!("{name}.toml"), &text).display().to_string()
    }

    /// A command of the binary on this shop.
    pub(crate) fn postrider(&self, arguments: &[&str]) -> Command {
        let mut command = story::process::postrider();
        command.args(arguments).env_clear().env("DATABASE_URL", self.url());
        command.env("KAFKA_BROKERS", &self.brokers).env("POSTRIDER_HTTP_LISTEN", "127.0.0.1:0");
        command
    }

    /// What a command of the binary says on stdout, if it succeeds.
    pub(crate) fn said(&self, arguments: &[&str]) -> String {
        let output = self.postrider(arguments).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Starts a relay: the real binary.
    pub(crate) fn relay(&self, name: &str, changes: &[(&str, &str)]) -> Logged {
        let file = self.relay_file(name, changes);
        Logged::start(&mut self.postrider(&["relay", "--config", &file]), self.folder.path(), name)
    }

    /// A process of the shop.
    pub(crate) fn commerce(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_commerce"));
        command.args(arguments).env("DATABASE_URL", self.url()).env("KAFKA_BROKERS", &self.brokers);
        command.env("NAME_PREFIX", &self.prefix).env("RETRY_INTERVAL_MS", "100");
        command.env("SESSION_TIMEOUT_MS", "6000").env("CACHE_URL", "http://127.0.0.1:9");
        command
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    /// Publishes a fact in a transaction of its own.
    pub(crate) async fn publish(&self, fact: DomainEvent) -> Uuid {
        self.publish_aged(fact, "0 s").await
    }

    /// The same, as if it had been so long ago.
    pub(crate) async fn publish_aged(&self, fact: DomainEvent, age: &str) -> Uuid {
        let mut tx = self.pool.begin().await.expect("a transaction");
        let id = self.outbox.record(&mut tx, &mapping::json(&fact).expect("JSON")).await.expect("recorded");
        let turn = format!(
            "set local session_replication_role = replica;
             update postrider.event set recorded_at = recorded_at - interval '{age}' where event_id = '{id}'"
        );
        sqlx::raw_sql(AssertSqlSafe(turn)).execute(&mut *tx).await.expect("turned");
        tx.commit().await.expect("committed");
        id
    }

    pub(crate) async fn run(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await.expect(sql);
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&self.pool).await.expect(sql)
    }

    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(&self.pool).await.expect(sql)
    }

    pub(crate) async fn state(&self, event: Uuid) -> String {
        let sql = format!("select state from postrider.event_state where event_id = '{event}'");
        self.texts(&sql).await.pop().unwrap_or_default()
    }

    pub(crate) async fn until_number(&self, what: &str, sql: &str, wanted: i64) {
        until(what, async || self.number(sql).await == wanted).await;
    }

    /// Waits until the relay is done with everything. It does not see what commits late: the cursor is past that.
    pub(crate) async fn until_sent(&self) {
        let at_end = "select count(*) from outbox_cursor
            where last_processed_id >= (select coalesce(max(id), 0) from postrider.event)";
        self.until_number("the cursor is at the end", at_end, 1).await;
    }

    /// Adds a product, and gives its number.
    pub(crate) async fn product(&self, stock: i32) -> i64 {
        let sql =
            format!("insert into products (name, price, stock) values ('tea', 1000, {stock}) returning id");
        self.number(&sql).await
    }
}

pub(crate) fn viewed(product_id: i64, user_id: i64) -> DomainEvent {
    DomainEvent::ProductViewed(ProductViewedEventV1 { product_id, user_id })
}

pub(crate) fn liked(product_id: i64, user_id: i64) -> DomainEvent {
    DomainEvent::LikeCreated(LikeCreatedEventV1 { user_id, product_id })
}

pub(crate) fn unliked(product_id: i64, user_id: i64) -> DomainEvent {
    DomainEvent::LikeCanceled(LikeCanceledEventV1 { user_id, product_id })
}

pub(crate) fn paid(order_id: i64) -> DomainEvent {
    DomainEvent::OrderPaid(OrderPaidEventV1 { order_id, payment_id: order_id, amount: 1000 })
}

pub(crate) fn depleted(product_id: i64) -> DomainEvent {
    DomainEvent::StockDepleted(StockDepletedEventV1 { product_id })
}
