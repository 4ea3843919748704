//! Retention on MariaDB and MySQL: months of the archive, and who waits for what.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_conformance::relay::{commit_one, drain, event, subscribe, until};
use postrider_core::{
    ArchiveOptions, Check, Clock, ErrorKind, EventQuery, Inspect, ManualClock, Mask, OffsetDateTime, Operate,
    Severity, Sweep,
};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{MySqlPool, Row};
use support::{My, MyLog};

const DAY: Duration = Duration::from_secs(86_400);

/// Logs whose archive is partitioned before anything is in it.
fn partitioned() -> My {
    My { after_migration: Some(|| vec!["call postrider_archive_months(null)".to_owned()]), ..My::default() }
}

mod promises_by_month {
    use super::*;
    postrider_conformance::promises!(partitioned();
        retention: the_archive_can_be_read_but_not_delivered, the_archive_loses_whole_months_only,
            what_is_masked_stays_out_of_the_archive, a_count_says_what_a_sweep_would_take;
        search: events_are_found_by_what_they_are, a_look_at_events_is_bounded_and_goes_on);
}

fn by_month() -> ArchiveOptions {
    ArchiveOptions { by_month: true, ..ArchiveOptions::default() }
}

fn archive() -> Sweep {
    Sweep::Archive { older_than: DAY, limit: 100, archiving: by_month() }
}

/// A log with a clock, and some events that were settled a day ago.
async fn settled(events: usize) -> (MyLog, ManualClock) {
    let clock = ManualClock::at(OffsetDateTime::now_utc());
    let log = My::default().my_log(Clock::Manual(clock.clone())).await;
    subscribe(&log.patched(), "s").await;
    for _ in 0..events {
        commit_one(&log, "a").await;
    }
    drain(&log.patched(), "s").await;
    clock.advance(DAY);
    (log, clock)
}

/// Events of so many months before this one, in an archive that is one table.
async fn months(log: &MyLog, months: u32, events: u32) {
    let values = (1..=months).flat_map(|month| {
        (1..=events).map(move |event| {
            let id = month * 1_000 + event;
            format!(
                "({id}, unhex(left(sha2({id}, 256), 32)), 's', 'OrderPaid', 'Order', '{id}', \
                 date_format(utc_timestamp() - interval {month} month, '%Y-%m-12'), \
                 date_format(utc_timestamp() - interval {month} month, '%Y-%m-12'), '{{}}', '{id}', utc_timestamp())"
            )
        })
    });
    let values = values.collect::<Vec<_>>().join(", ");
    log.run(&format!(
        "insert into postrider_archive (id, event_id, stream, event_type, aggregate_type, aggregate_id, occurred_at, recorded_at, \
         headers, payload, archived_at) values {values}"
    ))
    .await;
}

/// How many events each partition has; one that is no month is called by its name.
async fn parts(pool: &MySqlPool) -> Vec<(String, i64)> {
    let names = sqlx::query_scalar::<_, String>(
        "select partition_name from information_schema.partitions where table_schema = database() \
         and table_name = 'postrider_archive' and partition_name is not null order by partition_ordinal_position",
    );
    let mut parts = Vec::new();
    for name in names.fetch_all(pool).await.expect("names") {
        let sql = format!("select count(*) from postrider_archive partition ({name})");
        let events = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(pool).await.expect("a count");
        parts.push((name, events.get(0)));
    }
    parts
}

/// A sweep to its end, tried again when somebody is in its way.
async fn swept(log: &MyLog, sweep: &Sweep) -> u64 {
    let taken = AtomicU64::new(0);
    until("the sweep ends", || async {
        match log.patched().sweep(sweep).await {
            Ok(swept) => {
                taken.fetch_add(swept.taken, Ordering::AcqRel);
                !swept.more
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                false
            }
        }
    })
    .await;
    taken.into_inner()
}

async fn doctor(log: &MyLog) -> Check {
    let checks = log.patched().checks(OffsetDateTime::now_utc()).await.expect("checks");
    checks.into_iter().find(|check| check.name == "archive").expect("of the archive")
}

/// L13, L14: of six years, one goes: quickly, while publishers and readers of the archive go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_months_are_dropped_while_publishers_and_readers_go_on() {
    let log = Arc::new(My::default().my_log(Clock::Database).await);
    subscribe(&log.patched(), "s").await;
    months(&log, 72, 20).await;
    log.run("call postrider_archive_months(null)").await;
    assert_eq!(parts(&log.pool).await.len(), 72 + 3, "with this month, the next and what is later");
    let ended = Arc::new(AtomicBool::new(false));
    let worked: [Arc<(AtomicU64, AtomicU64)>; 2] = Default::default();
    let mut tasks = Vec::new();
    for (reads, worked) in worked.iter().enumerate() {
        let (log, ended, worked) = (Arc::clone(&log), Arc::clone(&ended), Arc::clone(worked));
        tasks.push(tokio::spawn(async move {
            while !ended.load(Ordering::Acquire) {
                let began = Instant::now();
                if reads == 1 {
                    let query = EventQuery { oldest_first: true, limit: 5, ..EventQuery::default() };
                    assert!(!log.patched().events(&query).await.expect("events").events.is_empty());
                } else {
                    log.outbox.record_outside_transaction(&event("a", 1)).await.expect("record");
                }
                let took = u64::try_from(began.elapsed().as_millis()).expect("a time");
                worked.0.fetch_add(1, Ordering::AcqRel);
                worked.1.fetch_max(took, Ordering::AcqRel);
            }
        }));
    }
    until("both work", || async { worked.iter().all(|worked| worked.0.load(Ordering::Acquire) > 5) }).await;
    let before: Vec<u64> = worked.iter().map(|worked| worked.0.load(Ordering::Acquire)).collect();
    let began = Instant::now();
    let taken = swept(&log, &Sweep::Archived { older_than: DAY * 365 * 5, limit: 10 }).await;
    let took = began.elapsed();
    until("both still work", || async {
        worked.iter().zip(&before).all(|(worked, before)| worked.0.load(Ordering::Acquire) > before + 5)
    })
    .await;
    ended.store(true, Ordering::Release);
    for task in tasks {
        task.await.expect("it works");
    }
    let left = parts(&log.pool).await;
    let months = i64::try_from(left.iter().filter(|(_, events)| *events == 20).count()).expect("a number");
    assert!((60..=61).contains(&months), "{months} months are left of six years");
    assert_eq!(left.len(), usize::try_from(months).expect("a number") + 3, "no empty month stays behind");
    assert_eq!(i64::try_from(taken).expect("a number"), (72 - months) * 20);
    assert_eq!(log.count("postrider_archive").await, months * 20);
    let slowest: Vec<u64> = worked.iter().map(|worked| worked.1.load(Ordering::Acquire)).collect();
    assert!(took < Duration::from_secs(30), "dropping took {took:?}");
    assert!(slowest.iter().all(|slowest| *slowest < 5000), "somebody waited: {slowest:?} ms");
}

/// A reader that takes its time holds up the drop of a month, and nobody behind it for long; what is to be archived does not
/// wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_reader_of_the_archive_stops_nobody() {
    let (log, clock) = settled(1).await;
    months(&log, 3, 1).await;
    log.run("call postrider_archive_months(null)").await;
    let mut reader = log.pool.begin().await.expect("begin");
    sqlx::query("select * from postrider_archive").fetch_all(&mut *reader).await.expect("read");
    // The months that it asks for can't be made now.
    clock.advance(DAY * 62);
    let began = Instant::now();
    assert_eq!(log.patched().sweep(&archive()).await.expect("archive").taken, 1);
    let before = parts(&log.pool).await;
    assert_eq!(before.len(), 6, "no month is made while somebody reads: {before:?}");
    let old = Sweep::Archived { older_than: Duration::ZERO, limit: 10 };
    let error = log.patched().sweep(&old).await.expect_err("somebody reads it");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20), "both give up soon: {:?}", began.elapsed());
    let found = log.patched().events(&EventQuery::default()).await.expect("others read");
    assert_eq!(found.events.len(), 4);
    log.outbox.record_outside_transaction(&event("a", 1)).await.expect("others publish");
    let patience: i64 = sqlx::query_scalar("select cast(@@session.lock_wait_timeout as signed)")
        .fetch_one(&log.pool)
        .await
        .expect("a setting");
    assert!(patience > 1, "the session keeps its own setting");
    reader.rollback().await.expect("rollback");
    assert_eq!(swept(&log, &old).await, 4, "all are of months that are over by then");
    assert_eq!(log.count("postrider_archive").await, 0);
}

/// The first sweep partitions an empty archive; every one makes the months that are missing, and one ahead; what came before its
/// month was there is put in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_ahead_is_always_there_and_no_event_is_refused() {
    let begun = OffsetDateTime::now_utc();
    let (log, clock) = settled(2).await;
    let name = |time: OffsetDateTime| format!("m{:04}_{:02}", time.year(), u8::from(time.month()));
    let now = OffsetDateTime::now_utc();
    assert!(doctor(&log).await.what.contains("not partitioned"));
    log.patched().check_archive(&by_month()).await.expect("an empty archive can be partitioned");
    assert_eq!(log.patched().sweep(&archive()).await.expect("archive").taken, 2);
    let made = parts(&log.pool).await;
    // Of the month in which they were recorded, also where the next one has begun since.
    assert!([(name(begun), 2), (name(now), 2)].contains(&made[0]), "{made:?}");
    assert!((3..=4).contains(&made.len()) && made.last() == Some(&("later".to_owned(), 0)), "{made:?}");
    assert!(doctor(&log).await.what.contains("months up to"));
    // Of a year ahead, as by a clock that was wrong, and of a year ago.
    for (id, interval) in [(500_000, "+ interval 1 year"), (500_001, "- interval 1 year")] {
        log.run(&format!(
            "insert into postrider_archive (id, event_id, stream, event_type, aggregate_type, aggregate_id, occurred_at, recorded_at, \
             headers, payload, archived_at) select {id}, unhex(left(sha2({id}, 256), 32)), stream, event_type, aggregate_type, aggregate_id, occurred_at, \
             date_format(utc_timestamp() {interval}, '%Y-%m-12'), headers, payload, archived_at from postrider_archive limit 1"
        ))
        .await;
    }
    let held = parts(&log.pool).await;
    assert_eq!((held[0].1, held.last().map(|(_, events)| *events)), (3, Some(1)), "{held:?}");
    clock.advance(DAY * 400);
    commit_one(&log, "a").await;
    drain(&log.patched(), "s").await;
    clock.advance(DAY);
    assert_eq!(log.patched().sweep(&archive()).await.expect("archive").taken, 1);
    let made = parts(&log.pool).await;
    let months: Vec<&str> = made.iter().map(|(name, _)| name.as_str()).collect();
    assert!(months.windows(2).all(|pair| pair[0] < pair[1] || pair[1] == "later"), "{months:?}");
    assert!((15..=17).contains(&made.len()), "{made:?}");
    assert_eq!(made.last(), Some(&("later".to_owned(), 0)), "what was there is in its month");
    assert_eq!(log.count("postrider_archive").await, 5);
    let next = made.len();
    assert_eq!(log.patched().sweep(&archive()).await.expect("archive").taken, 0);
    assert_eq!(parts(&log.pool).await.len(), next, "nothing more is made");
}

/// An archive that has events is not copied behind somebody's back: it says what to run, and nothing is lost by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_with_events_is_partitioned_when_somebody_says_so() {
    let (log, _clock) = settled(1).await;
    months(&log, 2, 3).await;
    for refused in
        [log.patched().check_archive(&by_month()).await.err(), log.patched().sweep(&archive()).await.err()]
    {
        let refused = refused.expect("it would be copied");
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        assert!(refused.message().contains("call postrider_archive_months(null)"), "{refused}");
    }
    assert_eq!(log.count("postrider_event").await, 1, "nothing is taken that is not put away");
    log.run("call postrider_archive_months(null)").await;
    log.run("call postrider_archive_months(null)").await;
    log.patched().check_archive(&by_month()).await.expect("it is partitioned");
    assert_eq!(log.patched().sweep(&archive()).await.expect("archive").taken, 1);
    let counts: Vec<i64> = parts(&log.pool).await.into_iter().map(|(_, events)| events).collect();
    assert_eq!(counts[..3], [3, 3, 1], "{counts:?}");

    log.run("alter table postrider_archive drop partition later").await;
    assert_eq!(doctor(&log).await.severity, Severity::Bad);
    log.run("alter table postrider_archive partition by hash (id) partitions 2").await;
    let refused =
        log.patched().check_archive(&by_month()).await.expect_err("it is partitioned by another column");
    assert!(refused.message().contains("by another column than recorded_at"), "{refused}");
    assert_eq!(doctor(&log).await.severity, Severity::Warn);
    let old = Sweep::Archived { older_than: Duration::ZERO, limit: 4 };
    assert_eq!(swept(&log, &old).await, 6, "and is deleted from in batches");
}

/// A relay's user needs no right to change tables: months are made and dropped by the owner's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_needs_no_right_to_change_tables_for_its_months() {
    let (log, clock) = settled(1).await;
    let user = format!("u{}", &log.database()[1..17]);
    let database = log.database().to_owned();
    log.run(&format!("create user {user}@'%' identified by 'secret'")).await;
    log.run(&format!("grant select, insert, update, delete, execute on {database}.* to {user}@'%'")).await;
    let options: MySqlConnectOptions = log.pool.connect_options().as_ref().clone();
    let pool = sqlx::mysql::MySqlPoolOptions::new()
        .max_connections(4)
        .connect_lazy_with(options.username(&user).password("secret"));
    let outbox = postrider_mysql::Outbox::builder().clock(Clock::Manual(clock.clone()));
    let store = outbox.connect(&pool).await.expect("connect").store();
    let made = store.sweep(&archive()).await;
    clock.advance(DAY * 62);
    let dropped = store.sweep(&Sweep::Archived { older_than: Duration::ZERO, limit: 10 }).await;
    let refused = sqlx::raw_sql("alter table postrider_archive drop partition later").execute(&pool).await;
    pool.close().await;
    log.run(&format!("drop user {user}@'%'")).await;
    assert_eq!(made.expect("archive").taken, 1);
    assert_eq!(dropped.expect("months").taken, 1);
    refused.expect_err("it may not");
}

/// Whatever has become of an event by the time that it is measured, the round of the archive ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_of_the_archive_ends_although_nothing_is_left_to_measure() {
    let (log, _clock) = settled(20).await;
    let store = log.patched().with_sql(|name, text| {
        let at = "on e.id = c.id";
        assert!(name != "sweep_sizes.sql" || text.contains(at), "the statement has changed: empty it anew");
        (name == "sweep_sizes.sql").then(|| text.replace(at, "on e.id = c.id and false"))
    });
    let mask = Mask::new(["password"]).expect("a mask");
    let archive = Sweep::Archive {
        older_than: DAY,
        limit: 100,
        archiving: ArchiveOptions { mask, ..ArchiveOptions::default() },
    };
    let swept = tokio::time::timeout(Duration::from_secs(20), store.sweep(&archive)).await;
    assert_eq!(swept.expect("it ends").expect("sweep").taken, 20);
}
