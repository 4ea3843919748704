//! What the database refuses, and what it finds without looking at everything.

use postrider::Uuid;
use postrider_testkit::until;
use umbra::contracts::*;

use crate::world::World;

/// U14: the database refuses a change of a recorded payload.
#[tokio::test]
async fn a_recorded_payload_cannot_be_changed() {
    let world = World::asleep().await;
    world.publish(BotKicked { guild_id: Uuid::new_v4() }).await;
    for change in ["update events.event set payload = '{}'", "delete from events.event"] {
        let done = sqlx::query(sqlx::AssertSqlSafe(change)).execute(&world.db).await;
        let refusal = done.expect_err("it must be refused").to_string();
        assert!(refusal.contains("events can't be changed"), "{refusal}");
    }
}

/// How many rows of the log and of its deliveries were read by scans, in all sessions that have ended.
const SCANNED: &str = "select sum(seq_tup_read)::bigint from pg_stat_user_tables
    where schemaname = 'events' and relname in ('event', 'delivery')";

/// U10: past 3,000 events that are delivered, the worker delivers 20 more by its own statements, and reads none of the old ones for it.
#[tokio::test]
async fn the_worker_scans_nothing_that_is_delivered() {
    let mut world = World::new().await;
    let record = "select events.record('member', 'MemberRestored', 'member', gen_random_uuid()::text, '{}')";
    world.run(&format!("{record} from generate_series(1, 3000)")).await;
    world.quiet().await;
    world.sleep().await;
    world.run("vacuum analyze events.event").await;
    world.run("vacuum analyze events.delivery").await;
    let before = world.statistics(SCANNED).await;
    world.wake().await;
    world.run(&format!("{record} from generate_series(1, 20)")).await;
    // The test itself must not look at the log by a scan.
    let audited = "select count(*) from audit.events";
    until("they are delivered", async || world.one::<i64>(audited).await == 3020).await;
    world.sleep().await;
    let scanned = world.statistics(SCANNED).await - before;
    assert!(scanned < 3000, "{scanned} rows were read by scans");
}

/// U10: what waits for a retry is found by a partial index, past 20,000 rows that are delivered; so is what is not read yet.
#[tokio::test]
async fn delivered_rows_are_not_scanned() {
    let world = World::new().await;
    world.run(
        "insert into events.delivery (subscription, id, event_id, key, lane_hash, state, holds, attempts, next_at)
         select 'audit', n, gen_random_uuid(), n::text, 0, case when n > 20000 then 'retrying' else 'delivered' end, false, 2,
                case when n > 20000 then clock_timestamp() + interval '1 hour' end
         from generate_series(1, 20005) n;
         select events.record('member', 'MemberRestored', 'member', gen_random_uuid()::text, '{}') from generate_series(1, 500);
         analyze events.delivery; analyze events.event",
    )
    .await;
    let partial = "select count(*) from pg_indexes where schemaname = 'events' and tablename = 'delivery'
        and indexname in ('delivery_look', 'delivery_dead', 'delivery_open') and indexdef like '% WHERE %'";
    assert_eq!(world.one::<i64>(partial).await, 3, "partial indexes");
    for (query, index) in [
        (
            "select id from events.delivery where subscription = 'audit' and lane = 0 and look_at <= clock_timestamp()",
            "delivery_look",
        ),
        ("select id from events.delivery where subscription = 'audit' and state = 'dead'", "delivery_dead"),
        ("select id from events.event where id > 480 order by id limit 50", "event_pkey"),
    ] {
        let plan = world.all::<String>(&format!("explain {query}")).await.join("\n");
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{query}: {plan}");
    }
}
