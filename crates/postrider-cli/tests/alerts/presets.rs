//! What the presets are tried with: as many events as their limits, and what `alerts check` says of them.

use postrider_testkit::until_true;
use serde_json::Value;

use crate::fixture::Fixture;

/// The name of an alert, its figure, and whether it fires.
pub(crate) type Row = (String, f64, bool);

/// What `alerts check` says: its exit code and its rows.
pub(crate) async fn check(fixture: &Fixture) -> (Option<i32>, Vec<Row>) {
    let (code, said) = fixture.run(&["alerts", "check", "--json"]).await;
    let rows: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let row = |row: &Value| {
        let name = row["alert"].as_str().expect("a name").to_owned();
        (name, row["value"].as_f64().expect("a figure"), row["firing"].as_bool().expect("a flag"))
    };
    (code, rows.iter().map(row).collect())
}

/// The figure of an alert.
pub(crate) fn value(name: &str, rows: &[Row]) -> f64 {
    rows.iter().find(|row| row.0 == name).map(|row| row.1).unwrap_or_else(|| panic!("{name}: {rows:?}"))
}

/// Behind the log's back: its events are made older than they are.
pub(crate) async fn execute(fixture: &Fixture, text: &str) {
    let text =
        format!("set session_replication_role = replica; {text}; set session_replication_role = origin");
    sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&fixture.pool).await.expect("done");
}

/// As many events and deliveries as are just not enough for an alert.
pub(crate) async fn reach_every_limit(fixture: &Fixture) {
    // A relay makes the subscription, and 10 dead and 100 retrying events.
    fixture.ear.always("/mail", Some(422));
    let mut relay = fixture.start("relay", &["relay"]);
    fixture.record(10).await;
    until_true("they are dead", || fixture.ear.heard("/mail").len() >= 10).await;
    relay.end();
    fixture.ear.always("/mail", Some(503));
    let mut relay = fixture.start("relay", &["relay"]);
    fixture.record(100).await;
    until_true("they are tried", || fixture.ear.heard("/mail").len() >= 110).await;
    relay.end();
    execute(fixture, "update postrider.delivery set attempts = 9 where state in ('waiting', 'retrying')")
        .await;
    fixture.record(899).await;
    execute(fixture, "update postrider.event set recorded_at = now() - interval '50 s'").await;
}

/// One more of each, and 99 that wait for long.
pub(crate) async fn pass_almost_every_limit(fixture: &Fixture) {
    fixture.record(9002).await;
    execute(
        fixture,
        "update postrider.delivery set state = 'dead' where id = (select min(id) from postrider.delivery where state = 'retrying')",
    )
    .await;
    execute(fixture, "update postrider.delivery set attempts = 200 where state = 'retrying'").await;
    execute(
        fixture,
        "insert into postrider.delivery (subscription, id, event_id, key, lane_hash, state, holds, attempts, next_at) \
         select d.subscription, e.id, e.event_id, d.key, d.lane_hash, 'retrying', false, 200, now() + interval '1 day' \
         from postrider.delivery d, (select id, event_id from postrider.event order by id desc limit 2) as e \
         where d.id = (select min(id) from postrider.delivery where state = 'retrying')",
    )
    .await;
    execute(
        fixture,
        "update postrider.event set recorded_at = now() - interval '301 s' \
         where id in (select id from postrider.event order by id desc offset 5 limit 99)",
    )
    .await;
}
