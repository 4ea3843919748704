//! The engine keeps its promises on MariaDB or MySQL.

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use postrider_conformance::engine::operating::{
    a_destination_that_is_away_shows, a_pause_waits_for_what_runs,
    a_relay_is_known_and_says_when_its_subscription_is_removed, a_sleeping_relay_notices_its_operator,
    a_try_under_suspicion_is_on_record, the_last_tries_show,
};
use postrider_conformance::engine::{Fixture, Statements, clock};
use postrider_core::Clock;
use postrider_mysql::Outbox;
use sqlx::MySqlConnection;
use support::{My, MyLog};
use tokio::sync::Mutex;

/// Keeps the logs it made until the test is over.
#[derive(Default)]
struct Server(Mutex<Vec<MyLog>>);

#[async_trait]
impl Fixture for Server {
    type Outbox = Outbox;

    async fn outbox(&self, clock: Clock) -> Outbox {
        let log = My::default().my_log(clock).await;
        let outbox = log.outbox.clone();
        self.0.lock().await.push(log);
        outbox
    }
}

#[async_trait]
impl Statements for Server {
    async fn run(connection: &mut MySqlConnection, statement: &'static str) -> Result<(), String> {
        sqlx::raw_sql(statement).execute(connection).await.map(|_| ()).map_err(|error| error.to_string())
    }
}

postrider_conformance::engine!(Server::default());
postrider_conformance::engine_on_sql!(Server::default());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_is_away_shows_until_it_is_back() {
    let log = My::default().my_log(Clock::Database).await;
    a_destination_that_is_away_shows(&log.outbox, Arc::new(log.outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_tries_of_a_delivery_that_failed_show() {
    let clock = clock();
    let log = My::default().my_log(Clock::Manual(clock.clone())).await;
    the_last_tries_show(&log.outbox, Arc::new(log.outbox.store()), clock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_under_suspicion_is_on_record_before_it_begins() {
    let log = My::default().my_log(Clock::Database).await;
    a_try_under_suspicion_is_on_record(&log.outbox, Arc::new(log.outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeping_relay_notices_a_replay_a_pause_and_a_resume() {
    let log = My::default().my_log(Clock::Database).await;
    a_sleeping_relay_notices_its_operator(&log.outbox, Arc::new(log.outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_is_known_and_says_when_its_subscription_is_removed_by_force() {
    let log = My::default().my_log(Clock::Database).await;
    a_relay_is_known_and_says_when_its_subscription_is_removed(&log.outbox, Arc::new(log.outbox.store()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_waits_for_what_is_running() {
    let log = My::default().my_log(Clock::Database).await;
    a_pause_waits_for_what_runs(&log.outbox, Arc::new(log.outbox.store())).await;
}
