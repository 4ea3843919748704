//! The database: away, not migrated, forbidden, damaged, behind a pooler.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use postrider::store::{
    Coordinate, DeliveryChange, DeliveryFailure, EventLog, RelayReport, RelayRun, Settlement, Subscription,
};
use postrider::{OnDead, Order, Uuid, postgres};
use postrider_testkit::address;
use sqlx::{Connection, PgConnection};

use crate::fixture::{Fixture, diagnosis};
use crate::pooler::Pooler;

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_database_is_found_to_be_sound() {
    let fixture = Fixture::new().await;
    fixture.record("orders", "OrderPaid").await;
    let found = fixture.doctor("");
    assert_eq!(found.verdict(), "ok");
    for about in [
        "schema",
        "grants",
        "clock",
        "long transactions",
        "sequence",
        "lanes",
        "inbox",
        "dead rows",
        "trigger",
        "restore",
        "dead events",
        "relays",
        "backlog",
        "pooler",
    ] {
        found.assert(about, "ok", &[]);
    }
    found.assert("bell", "ok", &["notifications arrive"]);
    let output = fixture.command(&["doctor"]).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.ends_with("\n15 findings: no problems\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_used_is_a_finding_and_not_the_end() {
    let fixture = Fixture::empty().await;
    let out = "[sink.out]\ntype = \"stdout\"\n";
    let found = fixture.doctor(out);
    found.assert("schema", "bad", &["is at version 0", "run `postrider migrate`"]);
    found.assert("sink out", "ok", &["standard output"]);

    let file = fixture.settings(out);
    let away = format!("postgres://user:planted-secret@{}/shop", postrider_testkit::address::nobody());
    for (url, about, words) in [
        (away.as_str(), "database", &["does not answer", "start it"][..]),
        ("sqlite:/nowhere/at/all.db", "database", &[][..]),
    ] {
        let found = diagnosis(fixture.command(&["doctor", "--json", "--config", &file, "--store", url]));
        found.assert(about, "bad", words);
        found.assert("sink out", "ok", &[]);
    }
    let missing = address::with_database(&fixture.url, "nobody_has_it");
    let found = diagnosis(fixture.command(&["doctor", "--json", "--store", &missing]));
    found.assert("database", "bad", &["there is no such database", "store.url"]);

    // What nobody could understand is no finding.
    let output = fixture.command(&["doctor", "--store", "oracle://x"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let mut command = fixture.command(&["doctor"]);
    let output = command.env_remove("POSTRIDER_STORE_URL").output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("store.url is not set"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_in_the_log_is_found_with_what_to_do() {
    let fixture = Fixture::new().await;
    let settings = "[[subscription]]\nname = \"hooks\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    let found = fixture.doctor(settings);
    found.assert("subscriptions", "warn", &["the log does not have these yet: hooks"]);
    let file = fixture.settings(settings);
    let created = fixture.command(&["subscriptions", "create", "--yes", "--config", &file]).output();
    assert!(created.expect("it runs").status.success());
    fixture.doctor(settings).assert("subscriptions", "ok", &[]);

    for _ in 0..3 {
        fixture.record("orders", "OrderPaid").await;
    }
    fixture.doctor(settings).assert("lanes", "ok", &[]);
    let old = "set session_replication_role = replica; update postrider.event set recorded_at = now() - interval '1 hour'";
    fixture.run(&format!("begin; {old}; commit")).await;
    let found = fixture.doctor(settings);
    found.assert("lanes", "warn", &["no relay reads the waiting events of: hooks", "start a relay"]);
    found.assert("relays", "warn", &["no relay runs hooks, and events wait for it", "start a relay"]);
    found.assert("backlog", "ok", &[]);
    let kept = format!("{settings}[retention]\ndelivered = \"30m\"\n");
    fixture.doctor(&kept).assert("backlog", "warn", &["hooks blocks retention", "catch up"]);
    fixture.run("update postrider.lane set system = system + 1").await;
    fixture.doctor(settings).assert("restore", "warn", &["of another server: hooks"]);
    fixture.run("update postrider.lane set system = system - 1").await;
    assert_eq!(found.verdict(), "warn");

    fixture.run("insert into postrider.forgotten (consumer, handled_at) values ('hooks', now())").await;
    fixture.doctor("").assert("inbox", "warn", &["it has forgotten events", "of: hooks", "keep inbox marks"]);
    let retention = "[retention]\ndelivered = \"30d\"\ninbox = \"7d\"\n";
    let words =
        ["retention.inbox = 7d is shorter than retention.delivered = 30d", "set retention.inbox to at least"];
    fixture.doctor(retention).assert("retention", "warn", &words);
    assert!(!fixture.doctor("[retention]\ndelivered = \"7d\"\n").has("retention"));

    fixture.run("insert into postrider.migration (version, name) values (99, 'to come')").await;
    fixture.doctor("").assert("schema", "bad", &["99", "upgrade postrider"]);
    fixture.run("delete from postrider.migration where version = 99").await;
    fixture.run("update postrider.migration set version = -version where version > 2").await;
    fixture.doctor("").assert("schema", "bad", &["is at version 2", "run `postrider migrate`"]);
    fixture.run("update postrider.migration set version = -version where version < 0").await;

    fixture.run("alter sequence postrider.event_id cache 10").await;
    fixture.doctor("").assert("sequence", "bad", &["has a cache: events would be lost", "cache 1"]);
    fixture.run("alter sequence postrider.event_id cache 1; select setval('postrider.event_id', 1)").await;
    fixture.doctor("").assert("sequence", "bad", &["behind", "setval("]);
    fixture.run("select setval('postrider.event_id', 3)").await;
    fixture.doctor("").assert("sequence", "ok", &[]);
}

/// An event that is to be tried again stays, and newer ones leave the log in spite of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_event_that_is_retried_is_no_backlog() {
    let fixture = Fixture::new().await;
    let store =
        postgres::Outbox::connect(&fixture.pool).await.expect("migrated").store().await.expect("a store");
    store.subscribe(&Subscription::new("hooks")).await.expect("subscribed");
    fixture.record("orders", "OrderPaid").await;
    let long = Duration::from_secs(600);
    let mut lease = store.claim("hooks", "relay-1", long).await.expect("claim").expect("a free lane");
    let batch = store.read(&lease, &lease.position.clone(), 10).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("timeout", "the shop does not answer");
    settlement.deliveries.push(DeliveryChange::retrying(&batch.events[0].event, 1, long, failure));
    store.settle(&mut lease, &settlement).await.expect("settle");
    let old = "begin; set local session_replication_role = replica; \
               update postrider.event set recorded_at = now() - interval '1 hour'; commit";
    fixture.run(old).await;
    fixture.record("orders", "OrderPaid").await;
    let kept = "[retention]\ndelivered = \"30m\"\n";
    fixture.doctor(kept).assert("backlog", "ok", &[]);
    fixture.run(old).await;
    fixture.doctor(kept).assert("backlog", "warn", &["hooks blocks retention", "catch up"]);
}

/// A relay gives back a lane that waits for a person: that it has the subscription is enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_strict_lane_behind_a_dead_event_has_a_relay_though_nobody_holds_it() {
    let fixture = Fixture::new().await;
    let store =
        postgres::Outbox::connect(&fixture.pool).await.expect("migrated").store().await.expect("a store");
    let strict = Subscription::new("hooks").order(Order::Strict).on_dead(OnDead::Hold);
    store.subscribe(&strict).await.expect("subscribed");
    fixture.record("orders", "OrderPaid").await;
    let long = Duration::from_secs(600);
    let mut lease = store.claim("hooks", "night-1", long).await.expect("claim").expect("a free lane");
    let batch = store.read(&lease, &lease.position.clone(), 10).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("rejected", "there is no such address");
    settlement.deliveries.push(DeliveryChange::dead(&batch.events[0].event, 1, failure));
    store.settle(&mut lease, &settlement).await.expect("settle");
    fixture.record("orders", "OrderPaid").await;
    let old = "begin; set local session_replication_role = replica; \
               update postrider.event set recorded_at = now() - interval '1 hour'; commit";
    fixture.run(old).await;
    store.release(lease).await.expect("released");
    let unread = ["no relay reads the waiting events of: hooks"];
    fixture.doctor("").assert("lanes", "warn", &unread);
    let run = RelayRun { subscription: "hooks".into(), ..RelayRun::default() };
    let report = RelayReport {
        id: Uuid::now_v7(),
        name: "night-1".into(),
        host: "shop-1".into(),
        process: 4711,
        version: "0.1.0".into(),
        runs: vec![run],
    };
    store.heartbeat(&report).await.expect("a heartbeat");
    let found = fixture.doctor("");
    found.assert("lanes", "ok", &["every subscription with events to read has a relay"]);
    found.assert("relays", "ok", &["every subscription has one"]);
    found.assert("dead events", "warn", &["hooks: 1 dead event holds its lane"]);
    let status = fixture.command(&["status", "--json"]).output().expect("it runs");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status["subscriptions"][0]["state"], "held", "{status}");
}

/// Retention waits until each subscription has passed an event, whatever its filter says of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_wants_nothing_of_a_backlog_blocks_retention_as_well() {
    let fixture = Fixture::new().await;
    let store =
        postgres::Outbox::connect(&fixture.pool).await.expect("migrated").store().await.expect("a store");
    store.subscribe(&Subscription::new("few").types(["Never"])).await.expect("subscribed");
    fixture.record("orders", "OrderPaid").await;
    let old = "begin; set local session_replication_role = replica; \
               update postrider.event set recorded_at = now() - interval '1 hour'; commit";
    fixture.run(old).await;
    let kept = "[retention]\ndelivered = \"30m\"\n";
    let words = ["few blocks retention: it has not read past events that were recorded 1h", "catch up"];
    fixture.doctor(kept).assert("backlog", "warn", &words);
    fixture.doctor("[retention]\ndelivered = \"2h\"\n").assert("backlog", "ok", &[]);
    let mut lease =
        store.claim("few", "relay-1", Duration::from_secs(600)).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position.clone(), 10).await.expect("read");
    store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settle");
    fixture.doctor(kept).assert("backlog", "ok", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_rows_that_stay_are_noticed() {
    let fixture = Fixture::new().await;
    fixture.run("alter table postrider.settled_batch set (autovacuum_enabled = false)").await;
    let rows = "insert into postrider.settled_batch (subscription, lane, lanes, first_id, last_id, count, settled_at, settled_by) \
                select 's', 0, 1, g, g, 1, now(), 'x' from generate_series(1, 15000) g";
    // A session that ends has told what it did.
    let mut session = PgConnection::connect(&fixture.url).await.expect("connected");
    for sql in [rows, "delete from postrider.settled_batch"] {
        sqlx::raw_sql(sql).execute(&mut session).await.expect(sql);
    }
    session.close().await.expect("closed");
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        // The server counts a moment later.
        let found = fixture.doctor("");
        let (verdict, text) = found.about("dead rows");
        if verdict == "warn" {
            assert!(text.contains("settled_batch (15000)") && text.contains("autovacuum"), "{text}");
            break;
        }
        assert!(Instant::now() < end, "{text}");
    }
}

/// Nobody waits for five minutes here: a view in front of the catalog's says that it was an hour ago.
#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_transaction_that_nobody_ends_is_noticed_and_its_end() {
    let fixture = Fixture::new().await;
    let ago = "create schema ago; create view ago.pg_prepared_xacts as \
               select gid, prepared - interval '1 hour' as prepared, database from pg_catalog.pg_prepared_xacts";
    fixture.run(ago).await;
    let path = "do $$ begin execute format('alter database %I set search_path = ago, pg_catalog', current_database()); end $$";
    fixture.run(path).await;
    fixture.doctor("").assert("long transactions", "ok", &[]);
    fixture.run("begin; select pg_current_xact_id(); prepare transaction 'forgotten'").await;
    let found = fixture.doctor("");
    // A database with one can't be dropped.
    fixture.run("rollback prepared 'forgotten'").await;
    let words =
        ["a prepared transaction has been open for 36", "commit it or roll it back; see pg_prepared_xacts"];
    found.assert("long transactions", "warn", &words);
    assert_eq!(found.verdict(), "warn");
    fixture.doctor("").assert("long transactions", "ok", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_relay_is_told_so() {
    let fixture = Fixture::new().await;
    let role = format!("r{}", postrider::Uuid::new_v4().simple());
    fixture.run(&format!("create role {role} login; select postrider.grant_record('{role}')")).await;
    let url = fixture.url.replace("postgres@", &format!("{role}@"));
    let found = diagnosis(fixture.command(&["doctor", "--json", "--store", &url]));
    found.assert("grants", "bad", &["grant_relay"]);
    fixture.run(&format!("select postrider.grant_relay('{role}')")).await;
    let found = diagnosis(fixture.command(&["doctor", "--json", "--store", &url]));
    found.assert("grants", "ok", &[]);
    assert_eq!(found.verdict(), "ok");
    fixture.run(&format!("drop owned by {role}; drop role {role}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_hides_notifications_is_found_out() {
    let fixture = Fixture::new().await;
    let port = fixture.url.rsplit_once(':').and_then(|(_, rest)| rest.split('/').next());
    let port: u16 = port.and_then(|port| port.parse().ok()).expect("a port");
    let pooler = Pooler::before(port).await;
    let url = fixture.url.replace(&format!(":{port}/"), &format!(":{}/", pooler.port));
    let found = diagnosis(fixture.command(&["doctor", "--json", "--store", &url]));
    found.assert("bell", "warn", &["a pooler blocks LISTEN", "session mode"]);
    assert_eq!(found.verdict(), "warn");
    let found = fixture.doctor("[store]\nbell = false\n");
    found.assert("bell", "warn", &["it is off"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedded_database_is_looked_at_as_well() {
    let fixture = Fixture::empty().await;
    let file = fixture.settings("").replace(".toml", ".db");
    let store = format!("sqlite:{file}");
    let migrated = fixture.command(&["migrate", "--store", &store]).output().expect("it runs");
    assert!(migrated.status.success());
    let found = diagnosis(fixture.command(&["doctor", "--json", "--store", &store]));
    assert_eq!(found.verdict(), "ok");
    for about in ["journal", "lanes", "sequence", "file", "writing"] {
        found.assert(about, "ok", &[]);
    }
    let mut bytes = std::fs::read(&file).expect("the file");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8192].fill(0xa5);
    std::fs::write(&file, bytes).expect("damaged");
    let found = diagnosis(fixture.command(&["doctor", "--json", "--store", &store]));
    assert_eq!(found.verdict(), "bad");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_seen_enough_may_close_the_pipe() {
    let fixture = Fixture::new().await;
    let mut child =
        fixture.command(&["doctor"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    drop(BufReader::new(child.stdout.take().expect("its output")).lines());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}
