//! The day's retention on PostgreSQL, with a clock that is turned and a publisher that never stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use postrider::postgres::Outbox;
use postrider::store::{ArchiveOptions, Clock, EventLog as _, ManualClock, Pacing, Settlement, Subscription};
use postrider::{NewEvent, Payload};
use sqlx::{AssertSqlSafe, PgPool};
use time::macros::datetime;
use tokio::task::JoinHandle;

use super::*;

const DAYS: usize = 10;
/// What is recorded on a day, beside what the publisher records.
const EVENTS: usize = 450;
const BATCH: u32 = 2;

/// A log in a schema of its own; it goes away, also when the test fails.
struct Log {
    pool: PgPool,
    outbox: Outbox,
    schema: String,
    clock: ManualClock,
    log: SharedStore,
    /// When a day's events were settled, and how many were by then.
    settled: Vec<(OffsetDateTime, i64)>,
}

fn server() -> String {
    std::env::var("POSTRIDER_TEST_POSTGRES")
        .expect("POSTRIDER_TEST_POSTGRES is not set: run `cargo xtask test`")
}

fn event(number: usize) -> NewEvent {
    NewEvent::new("orders", "OrderPaid", "Order", (number % 7).to_string(), Payload::Json("1".into()))
}

impl Log {
    async fn new() -> Self {
        let pool = PgPool::connect(&server()).await.expect("the server of the tests");
        let schema = format!("nights_{}", postrider::Uuid::new_v4().simple());
        let clock = ManualClock::at(datetime!(2026-01-01 01:00 UTC));
        let outbox = Outbox::builder().schema(&schema).clock(Clock::Manual(clock.clone()));
        let outbox = outbox.migrated(&pool).await.expect("migrated");
        let store = outbox.store().await.expect("a store");
        store.subscribe(&Subscription::new("s")).await.expect("subscribed");
        Self { pool, outbox, schema, clock, log: database::bounded(store), settled: Vec::new() }
    }

    /// A publisher that goes on, and how many events it has recorded.
    fn publisher(&self, stop: &Arc<AtomicBool>) -> (Arc<AtomicI64>, JoinHandle<()>) {
        let recorded = Arc::new(AtomicI64::new(0));
        let (outbox, stop, count) = (self.outbox.clone(), Arc::clone(stop), Arc::clone(&recorded));
        let task = tokio::spawn(async move {
            for number in 0.. {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                outbox.record_outside_transaction(&event(number)).await.expect("recorded");
                count.fetch_add(1, Ordering::AcqRel);
                // As often as not to be all that there is.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        (recorded, task)
    }

    /// Records a day's events, and settles all there is.
    async fn deliver(&mut self) {
        let mut connection = self.pool.acquire().await.expect("a connection");
        let events: Vec<NewEvent> = (0..EVENTS).map(event).collect();
        self.outbox.record_all(&mut connection, &events).await.expect("recorded");
        let store = &self.log;
        let mut lease = store.claim("s", "relay", DAY).await.expect("claim").expect("a free lane");
        let mut settled = self.settled.last().map_or(0, |(_, settled)| *settled);
        // A publisher goes on: what it records from here on is the next day's.
        let batch = store.read(&lease, &lease.position.clone(), 1_000_000).await.expect("read");
        settled += i64::try_from(batch.events.len()).expect("a count");
        store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settled");
        store.release(lease).await.expect("released");
        self.settled.push((self.clock.now(), settled));
    }

    /// How many events were settled at least two days ago.
    fn old(&self) -> i64 {
        let limit = self.clock.now() - time::Duration::days(2);
        self.settled.iter().filter(|(at, _)| *at <= limit).map(|(_, settled)| *settled).max().unwrap_or(0)
    }

    /// How many events are in a table.
    async fn count(&self, table: &str) -> i64 {
        let sql = format!("select count(*) from {}.{table}", self.schema);
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&self.pool).await.expect("a count")
    }

    /// Whether an event is in the archive that comes after one that is not. One that was committed while a day was read is late:
    /// it was settled a day after its neighbours, and leaves a day after them.
    async fn is_torn(&self) -> bool {
        let schema = &self.schema;
        let sql = format!(
            "select exists (select from {schema}.event e join {schema}.settled_batch b \
             on e.id between b.first_id and b.last_id where e.id < (select max(id) from {schema}.archive) \
             and not exists (select from {schema}.settled_batch l where l.late @> array[e.id]))"
        );
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&self.pool).await.expect("an answer")
    }

    fn relay(&self, name: &str) -> Daily {
        let retention = Retention {
            delivered: DAY * 2,
            archive: true,
            archived: None,
            inbox: DAY * 30,
            at: 2 * 60,
            zone: TimeZone::UTC,
            pacing: Pacing { batch: BATCH, pause: Duration::ZERO, share: 1.0 },
            archiving: ArchiveOptions::default(),
        };
        Daily { store: store(), retention, owner: name.to_owned(), lease: DAY / 2, longest_sleep: DAY }
    }

    async fn look(&self, relay: &Daily, ended: &watch::Receiver<bool>) {
        let look = relay.look(&mut Some(self.log.clone()), ended).await.expect("it looks");
        assert!(matches!(look, Look::Waiting(wait) if wait <= DAY), "{look:?}");
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let drop = AssertSqlSafe(format!("drop schema {} cascade", self.schema));
        // A runtime of its own: this one may be ending.
        let dropping = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let pool = PgPool::connect(&server()).await.expect("the server of the tests");
                let _ = sqlx::raw_sql(drop).execute(&pool).await;
            });
        });
        let _ = dropping.join();
    }
}

/// T7, L13: thousands of small batches, night after night, as ten million events are taken in thousands of large ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nights_of_small_batches_take_what_is_old_and_nothing_else_while_a_publisher_goes_on() {
    let mut log = Log::new().await;
    let relays = [log.relay("one"), log.relay("two")];
    let (_end, ended) = watch::channel(false);
    let stop = Arc::new(AtomicBool::new(false));
    let (recorded, publisher) = log.publisher(&stop);
    for day in 0..DAYS {
        log.deliver().await;
        log.clock.advance(DAY / 12);
        let (before, old) = (recorded.load(Ordering::Acquire), log.old());
        let taken = log.count("archive").await;
        log.look(&relays[day % 2], &ended).await;
        assert_eq!(log.count("archive").await, old, "what is old is taken, and nothing else, on day {day}");
        assert!(!log.is_torn().await, "the oldest are taken, on day {day}");
        if old > taken {
            assert!(recorded.load(Ordering::Acquire) > before, "the publisher goes on, on day {day}");
        }
        // The other one finds it done, and so does a second look.
        log.look(&relays[(day + 1) % 2], &ended).await;
        assert_eq!(log.count("archive").await, old, "it is done once");
        log.clock.advance(DAY - DAY / 12);
    }
    stop.store(true, Ordering::Release);
    publisher.await.expect("it ended");
    log.deliver().await;
    log.clock.advance(DAY * 3);
    log.look(&relays[0], &ended).await;
    let all = recorded.load(Ordering::Acquire) + i64::try_from(EVENTS * (DAYS + 1)).expect("a count");
    assert_eq!((log.count("event").await, log.count("archive").await), (0, all), "everything is taken");
    assert!(all / i64::from(BATCH) > 2000, "{all} events are thousands of batches");
}
