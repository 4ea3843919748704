//! What a handler's transaction comes to when SQLite, or its handler, has ended it on the way.

mod fixture;

use std::time::Duration;

use fixture::{Database, event};
use postrider_core::{Effect, ErrorKind, OutboxSource};
use postrider_sqlite::Outbox;
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;
use uuid::Uuid;

fn effect(events: &[Uuid]) -> Effect<'_> {
    Effect { lease: None, consumer: "licences", events, timeout: Duration::from_secs(20) }
}

/// An outbox whose application gets the handler's connection next.
async fn outbox_of_one_connection(database: &Database) -> (Outbox, SqlitePool) {
    let options = SqlitePoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(5));
    let pool = options.connect_with(database.options()).await.expect("a pool");
    let outbox = Outbox::migrated(&pool).await.expect("migrated");
    sqlx::raw_sql("create table licence (n integer primary key)").execute(&pool).await.expect("a table");
    sqlx::raw_sql("insert into licence values (1)").execute(&pool).await.expect("a row");
    (outbox, pool)
}

async fn licences(pool: &SqlitePool) -> i64 {
    sqlx::query_scalar("select count(*) from licence").fetch_one(pool).await.expect("a number")
}

/// What ends a transaction on the way, and leaves the connection in autocommit.
const ENDS: [&[&str]; 5] = [
    &["insert or rollback into licence values (1)"],
    &["rollback"],
    &["commit"],
    &["rollback", "begin"],
    &["commit", "begin immediate"],
];

#[tokio::test]
async fn what_a_handler_does_after_its_transaction_ended_is_not_kept() {
    let database = Database::new();
    let (outbox, pool) = outbox_of_one_connection(&database).await;
    for steps in ENDS {
        let events = [Uuid::now_v7()];
        let (mut tx, _) = OutboxSource::begin(&outbox, effect(&events)).await.expect("begun");
        for step in steps {
            let _ = sqlx::raw_sql(*step).execute(&mut *tx).await;
        }
        for n in [2, 3] {
            let _ = sqlx::query("insert into licence values (?)").bind(n).execute(&mut *tx).await;
        }
        let error = Outbox::commit(tx).await.expect_err("it is not whole");
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, "commit"), "{steps:?}: {error}");
        assert_eq!(licences(&pool).await, 1, "after {steps:?}");
        let handled = outbox.handled("licences", &events).await.expect("handled");
        assert_eq!(handled, [false], "nothing is marked after {steps:?}");
        let (tx, first) =
            OutboxSource::begin(&outbox, effect(&events)).await.expect("the connection is as it was");
        assert_eq!(first, [true], "after {steps:?}");
        Outbox::commit(tx).await.expect("committed");
    }
}

#[tokio::test]
async fn a_connection_goes_back_to_the_application_as_it_came_whatever_became_of_its_handler() {
    let database = Database::new();
    let (outbox, pool) = outbox_of_one_connection(&database).await;
    let mut kept = 0;
    for steps in ENDS.into_iter().chain([&[][..]]) {
        for end in ["committed", "rolled back", "dropped"] {
            let (mut tx, _) = OutboxSource::begin(&outbox, effect(&[])).await.expect("begun");
            for step in steps {
                let _ = sqlx::raw_sql(*step).execute(&mut *tx).await;
            }
            match end {
                "committed" => drop(Outbox::commit(tx).await),
                "rolled back" => Outbox::rollback(tx).await.expect("rolled back"),
                _ => drop(tx),
            }
            // The application's own, with and without a transaction.
            outbox.record_outside_transaction(&event("a")).await.expect("recorded");
            let mut own = outbox.begin().await.expect("begun");
            outbox.record(&mut own, &event("b")).await.expect("recorded");
            own.commit().await.expect("committed");
            kept += 2;
            let events: i64 = sqlx::query_scalar("select count(*) from postrider_event")
                .fetch_one(&pool)
                .await
                .expect("a number");
            assert_eq!(events, kept, "after {steps:?} was {end}");
        }
    }
}
