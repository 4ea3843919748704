//! A transactional handler is about to begin when the standby is promoted.

use std::time::Duration;

use postrider::postgres::Tx;
use postrider::{Event, Received, Relay, Retry};
use postrider_trials::proxy::Clients;
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, Row};

use crate::scene::{LEASE, MANY, PATIENCE, Reader, Scene, wait_for};

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(aggregate = "Order", id = order, stream = "orders")]
struct OrderPaid {
    order: String,
}

async fn grant(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), sqlx::Error> {
    let id = event.event().event_id;
    let connection: &mut PgConnection = &mut tx;
    sqlx::query("insert into licence (event_id) values ($1)").bind(id).execute(connection).await?;
    Ok(())
}

/// Its event vanished with the old server: there is nothing on the new one that the effect could be of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transactional_handler_applies_nothing_of_an_event_that_the_new_primary_never_had() {
    let mut scene = Scene::set(Clients::Cut, vec![Reader::plain()]).await;
    scene.old.run("create table licence (event_id uuid not null)").await;
    let retry = Retry::fixed(Duration::from_millis(50)).max_attempts(1000);
    let relay = Relay::new(&scene.outbox).lease(LEASE).poll_interval(Duration::from_millis(100));
    let relay = relay.figures_every(None).subscribe("licences", |s| {
        s.streams(["orders"]).on(grant).retry(retry).longest_pause(Duration::from_millis(100))
    });
    let relay = relay.start().await.expect("the relay starts");
    let outbox = scene.outbox.clone();
    let record = async |order: &str| {
        let event = OrderPaid { order: order.to_owned() };
        outbox.record_outside_transaction(&event).await.expect("recorded")
    };
    record("first").await;
    let applied = "select count(*) from licence";
    wait_for("nothing was applied", async || scene.old.number(applied).await == 1).await;
    let settled = "select (frontier >= (select max(id) from postrider.event))::integer::bigint from postrider.lane \
                   where subscription = 'licences'";
    wait_for("it was not settled", async || scene.old.number(settled).await == 1).await;
    scene.cut_off();
    scene.proxy.hold("for key share");
    for n in 0..10 {
        record(&format!("vanishes{n}")).await;
    }
    scene.proxy.holds(1).await;
    scene.kill().await;
    let log = scene.promote().await;
    scene.proxy.let_go();
    log.record("other", &["k1"], MANY).await;
    for n in 0..10 {
        record(&format!("new{n}")).await;
    }
    let owed = "select count(*) from postrider.event e \
                where stream = 'orders' and not exists (select from licence l where l.event_id = e.event_id)";
    wait_for("events had no effect", async || log.number(owed).await == 0).await;
    let sql = "select (select count(*) from licence), (select count(*) from licence l where not exists \
                 (select from postrider.event e where e.event_id = l.event_id))";
    let row = sqlx::query(sql).fetch_one(&log.0).await.expect("the licences");
    assert_eq!(
        row.get::<i64, _>(1),
        0,
        "of {} effects some are of events that never were",
        row.get::<i64, _>(0)
    );
    assert_eq!(row.get::<i64, _>(0), 11, "each once");
    tokio::time::timeout(PATIENCE, relay.stop()).await.expect("in time").expect("stopped");
    scene.stop().await;
}
