//! The queue: states, retries, dead events and several workers.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use everbit::adapters::bus::Kind;
use everbit::adapters::settings::Settings;
use everbit::adapters::workers::retry;
use everbit::application::Trading;
use everbit::domain::streams::{BACKTEST, NOTIFICATION, ORDER_EXECUTOR, SYSTEM};
use everbit::domain::{CreateOrderAttempt, KillSwitchChanged, RunBacktest};
use everbit::story::cast::Cast;
use everbit::stubs::exchange::Conduct;
use postrider::Retry;
use postrider::store::{Operate, ResolveDead};
use postrider_testkit::{until, until_within};
use serde_json::json;
use support::{Row, World, signal};
use uuid::Uuid;

impl World {
    /// The command of a backtest over the candles of a market.
    async fn backtest(&self, market: &str) -> Uuid {
        let job_id = Uuid::new_v4();
        let sql = "insert into backtest_job (id, market, status, created_at) values ($1, $2, 'QUEUED', 1)";
        sqlx::query(sql).bind(job_id).bind(market).execute(self.pool()).await.expect("a job");
        self.publish(&RunBacktest { job_id, market: market.to_owned() }).await
    }

    /// Lets the workers run until a row is so, and stops them.
    async fn run_until(&self, event: Uuid, what: &str, is_so: impl Fn(&Row) -> bool) -> Row {
        let workers = self.workers().await;
        until(what, async || is_so(&self.row(event).await)).await;
        workers.stop().await.expect("stopped");
        self.row(event).await
    }

    /// The command line of Postrider on this database.
    fn postrider(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = story::process::postrider()
            .args(["--store", &self.database.url()])
            .args(arguments)
            .output()
            .expect("postrider runs");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}

/// E7: the document's figures: half a second or a second, doubled, give or take a fifth, with a limit of its own per stream between one
/// minute and five. The document does not say whether the fifth counts: both limits lie in its range with and without it.
#[test]
fn pauses_are_those_of_the_document() {
    let settings = Settings::of("postgres://", Kind::Outbox);
    let seconds = |worker: &str, failed| {
        let retry = retry(worker, &settings);
        [0.0, 0.5, 1.0].map(|chance| (retry.pause(failed, chance).as_secs_f64() * 1000.0).round() / 1000.0)
    };
    assert_eq!(seconds(ORDER_EXECUTOR, 1), [0.4, 0.5, 0.6]);
    assert_eq!(seconds(ORDER_EXECUTOR, 2), [0.8, 1.0, 1.2]);
    assert_eq!(seconds(ORDER_EXECUTOR, 20), [48.0, 60.0, 72.0]);
    for worker in [NOTIFICATION, BACKTEST, SYSTEM] {
        assert_eq!(seconds(worker, 1), [0.8, 1.0, 1.2]);
        assert_eq!(seconds(worker, 3), [3.2, 4.0, 4.8]);
        assert_eq!(seconds(worker, 20), [200.0, 250.0, 300.0]);
    }
    let reader = r#"retry = { base = "1s", factor = 2, max = "250s", jitter = 0.2, max_attempts = 10 }"#;
    assert!(include_str!("../everbit.toml").contains(reader), "the reader of results waits as long");
}

/// E7: batch, lease and pauses are settings, with the document's values unless set; a batch of nothing is refused.
#[test]
fn batch_lease_and_pauses_are_settings() {
    let read = |given: &[(&str, &str)]| {
        let database = ("DATABASE_URL", "postgres://");
        let find = |name: &str| {
            given.iter().chain([&database]).find(|(each, _)| *each == name).map(|(_, value)| *value)
        };
        Settings::from(&|name| find(name).map(str::to_owned))
    };
    let pauses = |first, longest| {
        Retry::exponential().base(Duration::from_millis(first)).max(Duration::from_secs(longest))
    };
    let usual = read(&[]).expect("settings");
    assert_eq!((usual.batch, usual.lease), (100, Duration::from_secs(30)));
    assert_eq!((usual.command_retry, usual.event_retry), (pauses(500, 60), pauses(1_000, 250)));
    let given = [
        ("EVERBIT_BATCH", "7"),
        ("EVERBIT_LEASE_MS", "9000"),
        ("EVERBIT_COMMAND_RETRY", "base=700ms, max=1m20s"),
        ("EVERBIT_RETRY", "base=800ms, max=90s, max_attempts=4"),
        ("EVERBIT_KAFKA_ATTEMPTS", "3"),
    ];
    let set = read(&given).expect("settings");
    assert_eq!((set.batch, set.lease, set.kafka_attempts), (7, Duration::from_secs(9), 3));
    assert_eq!((set.command_retry, set.event_retry), (pauses(700, 80), pauses(800, 90).max_attempts(4)));
    assert!(read(&[("EVERBIT_BATCH", "0")]).expect_err("nothing").contains("must be at least 1"));
    let soon = read(&[("EVERBIT_RETRY", "base=soon")]).expect_err("no duration");
    assert!(soon.contains("EVERBIT_RETRY") && soon.contains("\"soon\" is not a duration"), "{soon}");
}

/// E7: a worker takes as many events at once, and waits as long after a failure, as its settings say.
#[tokio::test]
async fn a_worker_takes_as_many_and_waits_as_long_as_its_settings_say() {
    let mut world = World::new().await;
    world.settings.batch = 2;
    world.settings.event_retry = "base=20s, max=1m".parse().expect("a policy");
    for _ in 0..6 {
        world.publish(&KillSwitchChanged { engaged: false }).await;
    }
    world.direct("/candle-status", json!(503)).await;
    let event = world.backtest("KRW-BTC").await;
    let workers = world.workers().await;
    let done = "select count(*) from outbox_event where stream = 'everbit.system.event' and status = 'DONE'";
    until("all six are done", async || world.database.count(done).await == 6).await;
    until("the other one failed", async || world.row(event).await.attempt_count == 1).await;
    workers.stop().await.expect("stopped");
    let most = "select max(count)::bigint from postrider.settled_batch where subscription = 'system-worker'";
    assert_eq!(world.database.count(most).await, 2);
    let pause = world.row(event).await.pause.expect("a retry");
    assert!((16.0..=24.0).contains(&pause), "{pause} s");
}

/// E6: what can't be helped is dead at the first failure, what may work later is retried.
#[tokio::test]
async fn a_wrong_market_is_dead_at_once_and_an_exchange_that_fails_is_asked_again() {
    let world = World::new().await;
    let wrong = world.backtest("XYZ-ABC").await;
    let row = world.run_until(wrong, "it is dead", |row| row.status == "DEAD").await;
    assert_eq!((row.attempt_count, row.last_error_code.as_deref()), (1, Some("not_retryable")));
    world.direct("/candle-status", json!(503)).await;
    let right = world.backtest("KRW-BTC").await;
    let row = world.run_until(right, "it failed once", |row| row.attempt_count == 1).await;
    assert_eq!((row.status.as_str(), row.last_error_code.as_deref()), ("PENDING", Some("retryable")));
}

/// E6: a command without its intent can't be helped where both are one transaction: it is dead at once, and so is a backtest without its
/// job.
#[tokio::test]
async fn a_command_without_what_it_is_about_is_dead_at_once() {
    let world = World::new().await;
    let order = CreateOrderAttempt { order_intent_id: Uuid::new_v4(), attempt_no: 1 };
    let backtest = RunBacktest { job_id: Uuid::new_v4(), market: "KRW-BTC".to_owned() };
    for event in [world.publish(&order).await, world.publish(&backtest).await] {
        let row = world.run_until(event, "it is dead", |row| row.status == "DEAD").await;
        assert_eq!((row.attempt_count, row.last_error_code.as_deref()), (1, Some("not_retryable")));
    }
}

/// E7, E8, E3: a backtest is tried five times, with growing pauses; then it is dead, stays so, and goes on only by an operator's word.
#[tokio::test]
async fn an_event_dies_at_its_own_number_of_attempts_and_is_requeued_by_hand() {
    let world = World::new().await;
    world.direct("/candle-status", json!(503)).await;
    let event = world.backtest("KRW-BTC").await;
    for attempt in 1..=5 {
        let row = world.run_until(event, "it failed again", |row| row.attempt_count == attempt).await;
        assert_eq!(row.max_attempts, 5, "the event's own");
        if attempt == 5 {
            assert_eq!(row.status, "DEAD");
            break;
        }
        assert_eq!(row.status, "PENDING");
        let (pause, wanted) = (row.pause.expect("a retry"), f64::from(1 << (attempt - 1)));
        assert!((wanted * 0.8..=wanted * 1.2).contains(&pause), "{pause} s after attempt {attempt}");
        // The time is turned: it is due now.
        world.database.execute("update postrider.delivery set next_at = now()").await;
    }
    world.direct("/candle-status", json!(null)).await;
    // A year later, with everything else delivered, it is still dead.
    let later = "update postrider.delivery set last_attempt_at = last_attempt_at - interval '1 year',
                 first_failed_at = first_failed_at - interval '1 year'";
    world.database.execute(later).await;
    let other = world.backtest("KRW-ETH").await;
    world.run_until(other, "another one is done", |row| row.status == "DONE").await;
    assert_eq!(world.row(event).await.status, "DEAD");
    let kept = "select count(*) from postrider.sweepable(now() + interval '1 day', 0, 100) s(id)
                join postrider.event e on e.id = s.id where e.event_type = 'RunBacktest' and e.max_attempts = 5";
    // Retention waits until every worker has read past an event: then it takes the other one, and not what is dead.
    let workers = world.workers().await;
    until("retention may take the other one", async || world.database.count(kept).await > 0).await;
    workers.stop().await.expect("stopped");
    assert_eq!(world.database.count(kept).await, 1, "what is dead stays");

    let requeue = ResolveDead::Requeue { subscription: "backtest-worker".into(), events: vec![event] };
    let store = world.transactions.outbox.store().await.expect("the log");
    assert_eq!(store.resolve_dead(&requeue).await.expect("requeued"), 1);
    let row = world.row(event).await;
    assert_eq!((row.status.as_str(), row.attempt_count), ("PENDING", 0));
    let row = world.run_until(event, "it is done", |row| row.status == "DONE").await;
    assert_eq!(row.attempt_count, 1);
    assert_eq!(world.database.count("select count(*) from backtest_job where status = 'FINISHED'").await, 2);
}

/// E3: the database refuses every other step of a delivery, whoever takes it.
#[tokio::test]
async fn no_other_step_is_possible() {
    let world = World::new().await;
    let event = world.backtest("XYZ-ABC").await;
    world.run_until(event, "it is dead", |row| row.status == "DEAD").await;
    let step = async |state: &str| {
        let sql = "update postrider.delivery set state = $1 where event_id = $2";
        sqlx::query(sql).bind(state).bind(event).execute(world.pool()).await.map(drop)
    };
    for state in ["delivered", "running", "waiting"] {
        let refusal = step(state).await.expect_err("refused").to_string();
        assert!(refusal.contains(&format!("a delivery that is dead can't become {state}")), "{refusal}");
    }
    step("discarded").await.expect("an operator may");
    for state in ["dead", "retrying", "delivered", "running", "waiting"] {
        assert!(step(state).await.is_err(), "nothing follows after {state}");
    }
    assert_eq!(world.row(event).await.status, "DEAD", "the document keeps it for ever");
}

/// E11: what is done is not done again: a replay of the trade streams is refused, one of backtests is not.
#[tokio::test]
async fn a_replay_of_trades_is_refused() {
    let world = World::new().await;
    Trading::new(world.transactions.clone()).take(&signal(), 1).await.expect("taken");
    let workers = world.workers().await;
    let done = "select count(*) from outbox_event where event_type in ('CreateOrderAttempt', 'OrderAccepted') and status = 'DONE'";
    until("both are done", async || world.database.count(done).await == 2).await;
    workers.stop().await.expect("stopped");
    for worker in ["order-executor-worker", "notification-worker"] {
        let (code, said) = world.postrider(&["replay", worker, "--since", "1h", "--yes", "--why", "a test"]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("forbid") || said.contains("not allow"), "{said}");
    }
    let (code, said) = world.postrider(&["replay", "backtest-worker", "--since", "1h", "--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((world.requests().await, world.pushes().await.len()), (1, 1));
}

/// E4: while the exchange does not answer, no transaction of a worker is open: the claim is committed, and so is the request.
#[tokio::test]
async fn no_transaction_is_open_while_the_exchange_is_called() {
    let world = World::new().await;
    world.direct("/hold", json!(true)).await;
    let mut settings = world.settings.clone();
    settings.timeout = Duration::from_secs(120);
    let services = everbit::adapters::workers::Services::new(&world.transactions, &settings);
    let workers =
        everbit::adapters::workers::Workers::start(&world.transactions.outbox, &services, &settings);
    let workers = workers.await.expect("workers");
    Trading::new(world.transactions.clone()).take(&signal(), 1).await.expect("taken");
    until("the exchange is called", async || world.requests().await == 1).await;
    let open =
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
                and (state like 'idle in transaction%' or xact_start < now() - interval '1 second')";
    let held = "select count(*) from pg_locks l join pg_class c on c.oid = l.relation
                where c.relname in ('event', 'lane', 'delivery', 'order_attempt') and l.pid <> pg_backend_pid()
                and l.mode in ('RowExclusiveLock', 'RowShareLock')";
    // Looked at again and again: a short transaction may be seen once, one that is held is seen always.
    until_within("no transaction is open", Duration::from_secs(15), async || {
        world.database.count(open).await == 0 && world.database.count(held).await == 0
    })
    .await;
    let requested = "select count(*) from order_attempt where status = 'REQUESTED'";
    assert_eq!(world.database.count(requested).await, 1, "it is still under way");
    world.direct("/hold", json!(false)).await;
    workers.stop().await.expect("stopped");
}

/// E10: two workers share the stream of commands: each does some, and no order is placed twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_workers_share_a_stream_without_collisions() {
    let cast = Cast::raise(Path::new(env!("CARGO_BIN_EXE_everbit")), false).await;
    let only = [("EVERBIT_WORKERS", "order-executor-worker"), ("EVERBIT_LEASE_MS", "5000")];
    let (first, second) = (cast.worker("first", &only).await, cast.worker("second", &only).await);
    let owners =
        "select count(distinct lease_owner) from postrider.lane where subscription = 'order-executor-worker'";
    until("both have lanes", async || cast.database.count(owners).await == 2).await;
    let mut intents = Vec::new();
    for _ in 0..40 {
        intents.push(cast.signal(Conduct::Place).await);
    }
    cast.settled(&intents).await;
    let book = cast.book().await;
    assert_eq!((book.orders.len(), book.requests.len()), (40, 40));
    assert!(book.requests.values().all(|times| *times == 1), "{book:?}");
    let split = "select delivered_by, count(*) from postrider.event_state
                 where subscription = 'order-executor-worker' and state = 'done' group by 1";
    let split: BTreeMap<String, i64> = cast.database.table(split).await.into_iter().collect();
    assert_eq!(split.keys().map(String::as_str).collect::<Vec<_>>(), ["first", "second"], "{split:?}");
    assert_eq!(split.values().sum::<i64>(), 40, "{split:?}");
    drop((first, second));
}
