//! A transactional handler is about to begin when the standby is promoted.

use std::time::Duration;

use postrider::postgres::{Outbox, Tx};
use postrider::{Event, Received, Relay, Retry, Running};
use postrider_trials::proxy::Clients;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::scene::{LEASE, Log, MANY, PATIENCE, READ, Scene, TestSubscription};
use crate::wait_for;

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

/// A relay whose handler grants licences, beside the scene's own.
struct Licences {
    scene: Scene,
    relay: Running,
    outbox: Outbox,
}

impl Licences {
    /// One event is applied and settled, and the standby knows it.
    async fn set(clients: Clients) -> Self {
        let scene = Scene::set(clients, vec![TestSubscription::plain()]).await;
        scene.old.run("create table licence (event_id uuid not null)").await;
        let retry = Retry::fixed(Duration::from_millis(50)).max_attempts(1000);
        let relay = Relay::new(&scene.outbox).lease(LEASE).poll_interval(Duration::from_millis(100));
        let relay = relay.figures_every(None).subscribe("licences", |s| {
            s.streams(["orders"]).on(grant).retry(retry).longest_pause(Duration::from_millis(100))
        });
        let relay = relay.start().await.expect("the relay starts");
        let licences = Self { outbox: scene.outbox.clone(), scene, relay };
        licences.record("first", 1).await;
        licences.until_applied(&licences.scene.old).await;
        licences.until_settled(&licences.scene.old).await;
        licences
    }

    async fn record(&self, order: &str, count: usize) {
        for n in 0..count {
            let event = OrderPaid { order: format!("{order}{n}") };
            self.outbox.record_outside_transaction(&event).await.expect("recorded");
        }
    }

    /// Waits until each order has its effect.
    async fn until_applied(&self, log: &Log) {
        let owed = "select count(*) from postrider.event e \
                    where stream = 'orders' and not exists (select from licence l where l.event_id = e.event_id)";
        wait_for("orders have no licence", async || log.number(owed).await == 0).await;
    }

    async fn until_settled(&self, log: &Log) {
        let behind = "select count(*) from postrider.lane where subscription = 'licences' \
                      and frontier < (select max(id) from postrider.event)";
        wait_for("the orders are not settled", async || log.number(behind).await == 0).await;
    }

    /// Finds that every effect is of an order that is there, and each there once.
    async fn are_right(self, log: &Log, orders: i64) {
        self.until_settled(log).await;
        self.until_applied(log).await;
        let ghosts = "select count(*) from licence l \
                      where not exists (select from postrider.event e where e.event_id = l.event_id)";
        assert_eq!(log.number(ghosts).await, 0, "effects of orders that never were");
        assert_eq!(log.number("select count(*) from licence").await, orders, "each once");
        tokio::time::timeout(PATIENCE, self.relay.stop()).await.expect("in time").expect("stopped");
        self.scene.stop().await;
    }
}

/// Its event vanished with the old server: there is nothing on the new one that the effect could be of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transactional_handler_applies_nothing_of_an_event_that_the_new_primary_never_had() {
    let mut licences = Licences::set(Clients::Cut).await;
    licences.scene.cut_off();
    licences.scene.proxy.hold("for key share");
    licences.record("vanishes", 10).await;
    licences.scene.proxy.holds(1).await;
    licences.scene.kill().await;
    let log = licences.scene.promote().await;
    licences.scene.proxy.let_go();
    log.record("other", &["k1"], MANY).await;
    licences.record("new", 10).await;
    licences.are_right(&log, 11).await;
}

/// Events that the standby has were handled on the old primary, and their effects vanished with it. They are delivered, as far
/// as the relay remembers; on the new primary they are not.
async fn with_effects_that_vanished(clients: Clients) {
    let mut licences = Licences::set(clients).await;
    licences.scene.proxy.hold(READ);
    licences.scene.proxy.holds(2).await;
    licences.record("known", 10).await;
    licences.scene.cut_off();
    licences.scene.proxy.hold("claims_since_settle = 1");
    licences.until_applied(&licences.scene.old).await;
    licences.scene.proxy.holds(2).await;
    licences.scene.kill().await;
    let log = licences.scene.promote().await;
    licences.scene.proxy.let_go();
    licences.record("new", 5).await;
    licences.are_right(&log, 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_vanished_with_the_old_primary_happens_on_the_new_one() {
    with_effects_that_vanished(Clients::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_vanished_with_the_old_primary_happens_on_the_new_one_behind_a_pooler() {
    with_effects_that_vanished(Clients::Kept).await;
}
