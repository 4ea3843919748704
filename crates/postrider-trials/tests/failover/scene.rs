//! A relay on a server with an asynchronous standby, behind one address.

#![allow(unreachable_pub)]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use postrider::postgres::Outbox;
use postrider::{Relay, Retry, Running, Subscriber, Uuid};
use postrider_trials::endpoint::Endpoint;
use postrider_trials::proxy::{Clients, Proxy};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row, Transaction};
use xtask::postgres::{Cluster, Standby};

use crate::wait_for;

/// Small servers: there are many of them.
pub const SMALL: [(&str, &str); 4] = [
    ("shared_buffers", "32MB"),
    ("max_connections", "100"),
    ("max_prepared_transactions", "10"),
    ("synchronous_commit", "on"),
];
/// Longer than any trial: no lease runs out unless a trial wants it.
pub const LEASE: Duration = Duration::from_secs(120);
/// How long what must come may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// A piece of the statement that reads, which no other statement has.
pub const READ: &str = "late as materialized";
/// So many that their numbers reach into those that a promoted server hands out: it jumps over up to 32.
pub const MANY: usize = 120;

/// Runs something that waits for servers, without keeping a thread of the runtime from others.
pub fn blocking<T>(work: impl FnOnce() -> Result<T, xtask::TaskError>) -> T {
    tokio::task::block_in_place(work).expect("the servers do as they are told")
}

/// An application's connections to one server, past every proxy.
pub async fn connect(cluster: &Cluster) -> PgPool {
    PgPoolOptions::new()
        .max_connections(8)
        .connect(&cluster.url("postgres"))
        .await
        .expect("the server answers")
}

/// Where events are recorded.
#[derive(Clone)]
pub struct Log(pub PgPool);

impl Log {
    /// Records events of a stream in one transaction, of so many keys in turn, and gives their ids.
    pub async fn record(&self, stream: &str, keys: &[&str], count: usize) -> Vec<Uuid> {
        let sql = "insert into postrider.event (stream, event_type, aggregate_type, aggregate_id, payload) \
                   select $1, 'Paid', 'Order', ($2::text[])[1 + n % array_length($2::text[], 1)], to_json(n) \
                   from generate_series(0, $3::bigint - 1) as n returning event_id";
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let query = sqlx::query(sql).bind(stream).bind(keys).bind(count as i64);
        query.fetch_all(&self.0).await.expect("recorded").iter().map(|row| row.get(0)).collect()
    }

    pub async fn run(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.0).await.expect(sql);
    }

    /// The single number that a query gives.
    pub async fn number(&self, sql: &str) -> i64 {
        let row = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(&self.0).await.expect(sql);
        row.get(0)
    }

    /// All events of some streams, in the order of their numbers.
    pub async fn events(&self, streams: &[&str]) -> Vec<Uuid> {
        let sql = "select event_id from postrider.event where stream = any ($1) order by id";
        let streams: Vec<String> = streams.iter().map(|stream| (*stream).to_owned()).collect();
        let rows = sqlx::query(sql).bind(streams).fetch_all(&self.0).await.expect("the log");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Keys of which lane 0 of two has none: what is theirs is only passed over there.
    pub async fn keys_of_lane(&self, lane: i32) -> Vec<String> {
        let sql = "select 'k' || n from generate_series(1, 20) as n \
                   where postrider.hash_of(postrider.key_of(null, 'Order', 'k' || n)) % 2 = $1";
        let rows = sqlx::query(sql).bind(lane).fetch_all(&self.0).await.expect("the hash");
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// A subscription of the trial: what it wants, and where it goes.
pub struct TestSubscription {
    pub name: &'static str,
    streams: &'static [&'static str],
    lanes: u32,
    pub batch: u32,
    pub endpoint: Endpoint,
}

impl TestSubscription {
    fn new(name: &'static str, streams: &'static [&'static str], lanes: u32) -> Self {
        Self { name, streams, lanes, batch: 500, endpoint: Endpoint::default() }
    }

    pub fn plain() -> Self {
        Self::new("plain", &["wanted", "other"], 1)
    }

    pub fn filtered() -> Self {
        Self::new("filtered", &["wanted"], 1)
    }

    pub fn laned() -> Self {
        Self::new("laned", &["wanted", "other"], 2)
    }

    pub fn batch(mut self, batch: u32) -> Self {
        self.batch = batch;
        self
    }

    fn subscribe(&self, subscriber: Subscriber<Outbox>) -> Subscriber<Outbox> {
        let subscriber = match self.streams {
            ["wanted"] => subscriber.streams(["wanted"]),
            _ => subscriber,
        };
        let retry = Retry::fixed(Duration::from_millis(100)).max_attempts(1000);
        subscriber.lanes(self.lanes).batch(self.batch).retry(retry).sink(self.endpoint.clone())
    }

    /// Finds that all events of its streams that the log has were taken in time, those of a key in their order.
    async fn check(&self, log: &Log, end: Instant) -> Result<(), String> {
        let events = log.events(self.streams).await;
        let missing = self.endpoint.missing(&events, end.saturating_duration_since(Instant::now())).await;
        if !missing.is_empty() {
            return Err(format!("{}: {} of {} events never came", self.name, missing.len(), events.len()));
        }
        let place: HashMap<Uuid, usize> = events.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let mut last: HashMap<String, usize> = HashMap::new();
        let mut seen = std::collections::HashSet::new();
        for event in self.endpoint.took() {
            // A repetition, or an event that only the old server had.
            let Some(place) = place.get(&event.event_id).filter(|_| seen.insert(event.event_id)) else {
                continue;
            };
            let before = last.insert(event.aggregate_id.clone(), *place);
            if before.is_some_and(|before| before > *place) {
                return Err(format!("{}: {} came out of order", self.name, event.aggregate_id));
            }
        }
        Ok(())
    }
}

/// A primary, its standby, an address in front of them, and a relay.
pub struct Scene {
    pub primary: Cluster,
    standby: Option<Standby>,
    pub proxy: Proxy,
    pub outbox: Outbox,
    /// The log on the old primary.
    pub old: Log,
    pub readers: Vec<TestSubscription>,
    relay: Option<Running>,
    /// The last number that the old primary handed out.
    vanished_up_to: i64,
}

impl Scene {
    /// A relay that has delivered and settled some events, which the standby knows of.
    pub async fn set(clients: Clients, readers: Vec<TestSubscription>) -> Self {
        let primary = blocking(|| Cluster::create(&SMALL));
        let standby = blocking(|| Standby::of(&primary));
        Self::set_on(primary, Some(standby), clients, readers).await
    }

    /// The same on servers that are there.
    pub async fn set_on(
        primary: Cluster,
        standby: Option<Standby>,
        clients: Clients,
        readers: Vec<TestSubscription>,
    ) -> Self {
        let proxy = Proxy::before(primary.port(), clients).await;
        let direct = connect(&primary).await;
        Outbox::builder().migrated(&direct).await.expect("migrated");
        let pool = PgPoolOptions::new()
            .max_connections(8)
            .acquire_timeout(Duration::from_secs(5))
            .connect(&proxy.url("postgres"))
            .await
            .expect("the proxy leads to the server");
        let outbox = Outbox::builder().connect(&pool).await.expect("an outbox");
        let old = Log(direct);
        let mut scene =
            Self { primary, standby, proxy, outbox, old, readers, relay: None, vanished_up_to: 0 };
        scene.relay = Some(scene.start().await);
        let events = scene.old.record("wanted", &["k1", "k2", "k3", "k4", "k5"], 10).await;
        for reader in &scene.readers {
            assert!(reader.endpoint.missing(&events, PATIENCE).await.is_empty(), "{} reads", reader.name);
        }
        scene.until_settled().await;
        scene
    }

    async fn start(&self) -> Running {
        let mut relay = Relay::new(&self.outbox)
            .owner("relay")
            .lease(LEASE)
            .poll_interval(Duration::from_millis(100))
            .figures_every(None);
        for reader in &self.readers {
            relay = relay.subscribe(reader.name, |subscriber| reader.subscribe(subscriber));
        }
        relay.start().await.expect("the relay starts")
    }

    pub fn lanes(&self) -> usize {
        self.readers.iter().map(|reader| reader.lanes as usize).sum()
    }

    /// Waits until every lane has settled all that the old primary has.
    pub async fn until_settled(&self) {
        let settled = "select count(*) from postrider.lane \
                       where frontier < (select max(id) from postrider.event)";
        wait_for("lanes are not at the end of the log", async || self.old.number(settled).await == 0).await;
    }

    /// Holds the next read of every lane: nothing of the relay is under way.
    pub async fn hold_reads(&self) {
        self.proxy.hold(READ);
        self.proxy.holds(self.lanes()).await;
    }

    /// From here on the standby gets nothing more.
    pub fn cut_off(&self) {
        let standby = self.standby.as_ref().expect("a standby");
        blocking(|| standby.catch_up(&self.primary).and_then(|()| standby.cut_off()));
    }

    /// Lets every destination keep what it is given.
    pub fn close(&self) {
        self.readers.iter().for_each(|reader| reader.endpoint.close());
    }

    pub fn open(&self) {
        self.readers.iter().for_each(|reader| reader.endpoint.open());
    }

    /// Holds every lane's read, records what the standby still gets and what it never does, and lets the lanes read all of it
    /// at once: it is in the hands of the destinations, which do not answer.
    ///
    /// What vanishes is not wanted by the filter and is of keys of lane 1: the last event that `filtered` and lane 0 get is
    /// known to the standby, and the end of what they passed over is not.
    pub async fn take_in_hand(&self, replicated: usize) {
        self.take_in_hand_with(replicated, async || ()).await;
    }

    /// The same, with something else that only the old primary will ever have had.
    pub async fn take_in_hand_with(&self, replicated: usize, and: impl AsyncFnOnce()) {
        let kept = self.prepare_hands(replicated, and).await;
        self.proxy.let_go();
        self.until_in_hand(&kept).await;
    }

    /// The same, but only so many reads are answered; those behind them are held.
    pub async fn take_some_in_hand(&self, replicated: usize, reads: usize) {
        let kept = self.prepare_hands(replicated, async || ()).await;
        self.proxy.let_pass(reads as u64);
        self.until_in_hand(&kept).await;
    }

    /// The same, with one batch for each lane that was read ahead.
    pub async fn take_in_hand_and_ahead(&self, replicated: usize) {
        self.take_some_in_hand(replicated, 2 * self.lanes()).await;
        self.proxy.passed().await;
        self.proxy.let_go();
    }

    async fn prepare_hands(&self, replicated: usize, and: impl AsyncFnOnce()) -> Vec<Uuid> {
        self.close();
        self.hold_reads().await;
        let all: Vec<String> = (1..=20).map(|key| format!("k{key}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let kept = self.old.record("wanted", &all, replicated).await;
        self.cut_off();
        and().await;
        let keys = self.old.keys_of_lane(1).await;
        self.vanish(&keys.iter().map(String::as_str).collect::<Vec<_>>(), MANY).await;
        kept
    }

    async fn until_in_hand(&self, kept: &[Uuid]) {
        for reader in &self.readers {
            reader.endpoint.holds(|event| kept.contains(&event.event_id)).await;
        }
    }

    /// Records what only the old primary will ever have had.
    pub async fn vanish(&self, keys: &[&str], count: usize) -> Vec<Uuid> {
        self.old.record("other", keys, count).await
    }

    /// The old primary dies.
    pub async fn kill(&mut self) {
        self.note_the_end().await;
        blocking(|| self.primary.kill());
    }

    /// Remembers the last number that the old primary has handed out.
    pub async fn note_the_end(&mut self) {
        self.vanished_up_to = self.old.number("select max(id) from postrider.event").await;
    }

    /// The standby takes its place at the address, and clients record there.
    pub async fn promote(&mut self) -> Log {
        let standby = self.standby.take().expect("a standby");
        self.primary = blocking(|| standby.promote());
        self.lead_to_the_primary().await
    }

    /// What the standby has written to its log.
    pub fn said_by_the_standby(&self) -> String {
        let standby = self.standby.as_ref().expect("a standby");
        std::fs::read_to_string(standby.cluster().log()).unwrap_or_default()
    }

    /// The address leads to the standby, which is none but read-only yet.
    pub async fn lead_to_the_standby(&self) {
        let standby = self.standby.as_ref().expect("a standby");
        self.proxy.lead_to(standby.cluster().port()).await;
    }

    /// The address leads to what is the primary now.
    pub async fn lead_to_the_primary(&self) -> Log {
        let log = Log(connect(&self.primary).await);
        self.proxy.lead_to(self.primary.port()).await;
        log
    }

    /// The standby is promoted when it has everything, and the primary ends in order.
    pub async fn switch_over(&mut self) -> Log {
        let standby = self.standby.take().expect("a standby");
        blocking(|| {
            standby.catch_up(&self.primary)?;
            self.primary.stop()
        });
        self.primary = blocking(|| standby.promote());
        self.lead_to_the_primary().await
    }

    /// Finds that every destination took all that the log has of its streams, in the order of each key.
    pub async fn keeps_its_promises(&self, log: &Log) {
        let mut troubles = Vec::new();
        let end = Instant::now() + PATIENCE;
        for reader in &self.readers {
            troubles.extend(reader.check(log, end).await.err());
        }
        assert!(troubles.is_empty(), "{}", troubles.join("; "));
    }

    /// What a destination took of events that the log has, with how often.
    pub async fn repeated(&self, log: &Log, reader: usize) -> usize {
        let events = log.events(&["wanted", "other"]).await;
        events.iter().map(|event| self.readers[reader].endpoint.times(*event).saturating_sub(1)).sum()
    }

    /// Records on the promoted server: many events, most of them with numbers of events that vanished, and a few before them
    /// in a transaction that is still open: they come late.
    pub async fn record_anew(&self, log: &Log) -> Transaction<'static, Postgres> {
        let mut late = log.0.begin().await.expect("begin");
        let sql = "insert into postrider.event (stream, event_type, aggregate_type, aggregate_id, payload) \
                   select 'wanted', 'Paid', 'Order', 'late' || n, 'null' from generate_series(1, 3) as n";
        sqlx::query(sql).execute(&mut *late).await.expect("recorded");
        let keys: Vec<String> = (1..=20).map(|key| format!("k{key}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut recorded = log.record("wanted", &keys, MANY / 2).await;
        recorded.extend(log.record("other", &keys, 20).await);
        recorded.extend(log.record("wanted", &keys, MANY).await);
        let sql = "select count(*) from postrider.event where event_id = any ($1) and id <= $2";
        let overlap = sqlx::query(sql).bind(recorded).bind(self.vanished_up_to).fetch_one(&log.0).await;
        let overlap: i64 = overlap.expect("the log").get(0);
        assert!(overlap > 30, "only {overlap} new events have the number of one that vanished");
        late
    }

    /// All that the promoted server has comes, now and once its late events are there.
    pub async fn delivers_everything(&self, log: &Log, late: Transaction<'static, Postgres>) {
        self.keeps_its_promises(log).await;
        late.commit().await.expect("commit");
        self.keeps_its_promises(log).await;
    }

    pub async fn stop(mut self) {
        if let Some(relay) = self.relay.take() {
            relay.stop().await.expect("the relay stops");
        }
    }
}
