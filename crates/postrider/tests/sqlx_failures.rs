//! What an error of sqlx becomes in a handler, with the errors of real servers.

use std::time::Duration;

use postrider::{Failure, mysql, postgres, sqlite};
use postrider_testkit::{mysql::Database as MySqlDatabase, postgres::Database as PgDatabase};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Connection as _, MySqlConnection, PgConnection, PgPool, SqlitePool};

const SOON: Duration = Duration::from_millis(200);

/// It waits: the same class as `Failure::unavailable`, whatever it says.
#[track_caller]
fn waits(failure: Failure) {
    assert_eq!(failure, Failure::unavailable(failure.message()));
}

#[track_caller]
fn is_tried_again(failure: Failure) {
    assert_eq!(failure, Failure::retry(failure.message()));
}

#[tokio::test]
async fn a_postgres_that_is_away_makes_a_handler_wait_and_anything_else_is_tried_again() {
    let database = PgDatabase::new().await;
    let mut connection = PgConnection::connect_with(&database.options()).await.expect("a connection");
    let error = sqlx::query("select 1 / 0").execute(&mut connection).await.expect_err("divided by zero");
    is_tried_again(postgres::failure(error));
    let end = "select pg_terminate_backend(pg_backend_pid())";
    waits(postgres::failure(sqlx::query(end).execute(&mut connection).await.expect_err("ended")));
    waits(postgres::failure(sqlx::query("select 1").execute(&mut connection).await.expect_err("broken")));
    let one = PgPoolOptions::new().max_connections(1).acquire_timeout(SOON);
    let pool: PgPool = one.connect_with(database.options()).await.expect("a pool");
    let held = pool.acquire().await.expect("a connection");
    waits(postgres::failure(pool.acquire().await.expect_err("none is free")));
    drop(held);
    // A port that nobody listens at.
    let nobody = database.options().host("127.0.0.1").port(1);
    waits(postgres::failure(PgConnection::connect_with(&nobody).await.expect_err("refused")));
}

#[tokio::test]
async fn a_mariadb_that_is_away_makes_a_handler_wait_and_anything_else_is_tried_again() {
    let database = MySqlDatabase::new().await;
    let url = database.url();
    let mut connection = MySqlConnection::connect(&url).await.expect("a connection");
    let error = sqlx::query("select nothing from nowhere").execute(&mut connection).await;
    is_tried_again(mysql::failure(error.expect_err("there is no such table")));
    let id: u64 =
        sqlx::query_scalar("select connection_id()").fetch_one(&mut connection).await.expect("a number");
    let mut other = MySqlConnection::connect(&url).await.expect("a connection");
    let kill = sqlx::AssertSqlSafe(format!("kill {id}"));
    sqlx::raw_sql(kill).execute(&mut other).await.expect("killed");
    waits(mysql::failure(sqlx::query("select 1").execute(&mut connection).await.expect_err("broken")));
    let pool = MySqlPoolOptions::new().max_connections(1).acquire_timeout(SOON).connect(&url).await;
    let pool = pool.expect("a pool");
    let _held = pool.acquire().await.expect("a connection");
    waits(mysql::failure(pool.acquire().await.expect_err("none is free")));
}

#[tokio::test]
async fn a_file_that_is_away_makes_a_handler_wait_and_anything_else_is_tried_again() {
    let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(SOON);
    let pool = pool.connect("sqlite::memory:").await.expect("a pool");
    let error = sqlx::query("select nothing from nowhere").execute(&pool).await.expect_err("no such table");
    is_tried_again(sqlite::failure(error));
    let _held = pool.acquire().await.expect("a connection");
    waits(sqlite::failure(pool.acquire().await.expect_err("none is free")));
    let missing = SqlitePool::connect("sqlite:/nowhere/at/all.db").await.expect_err("no such file");
    waits(sqlite::failure(missing));
}
