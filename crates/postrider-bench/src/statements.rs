//! What a relay costs that has nothing to do, on a server: statements, and dead rows.
//!
//! The relay has a database to itself. Its statements are counted there by `pg_stat_statements`, without the one that asks;
//! where the server has not loaded that, as the database's transactions: an idle relay sends single statements, each of
//! which is one. That counter is read from another database, so that reading it does not count, but it counts more than
//! statements: also what each connection prepares for the first time, new connections, and what autovacuum does (all is
//! vacuumed before, so that it finds little). A server passes such counters, and those of rows, on late, an idle session
//! within ten seconds: so what came before the window is waited for, and so is what was written in it.

use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use crate::AnyError;
use crate::data::{Bench, server};
use crate::report::Report;

/// How many events a relay delivers before it has nothing to do.
pub(crate) const EVENTS: u64 = 20_000;
/// After this long every session has passed on what it counted.
pub(crate) const PASSED_ON: Duration = Duration::from_secs(12);
/// After a third of the default lease a lane is given back.
const GIVEN_BACK: Duration = Duration::from_secs(10);

/// What was written in the schema so far.
#[derive(Clone, Copy)]
struct Written {
    dead: i64,
    changed: i64,
    /// Lanes that somebody holds.
    held: i64,
}

/// What an idle relay has cost.
pub(crate) struct Idle {
    /// How many statements, by what, and in how long.
    pub(crate) detail: String,
    /// Statements a second.
    pub(crate) rate: f64,
    /// How many more dead rows there are.
    pub(crate) dead: i64,
    /// How many rows were updated or deleted.
    pub(crate) changed: i64,
    /// How long rows were looked at.
    pub(crate) minutes: f64,
}

/// What statements are counted by.
pub(crate) enum Counter {
    /// Those of the database that this session is in.
    Statements(PgConnection),
    /// Transactions, seen from another database.
    Transactions { outside: PgConnection, database: String },
}

impl Counter {
    /// The exact one if the server has it.
    async fn of(bench: &Bench, database: &str) -> Result<Self, AnyError> {
        let mut inside = PgConnection::connect_with(&bench.pool.connect_options()).await?;
        let extension = "create extension pg_stat_statements; select count(*) from pg_stat_statements";
        if sqlx::raw_sql(extension).execute(&mut inside).await.is_ok() {
            return Ok(Self::Statements(inside));
        }
        inside.close().await?;
        let outside = PgConnection::connect_with(&server()?).await?;
        Ok(Self::Transactions { outside, database: database.to_owned() })
    }

    async fn read(&mut self) -> Result<i64, AnyError> {
        Ok(match self {
            Self::Statements(inside) => {
                let sql = "select coalesce(sum(s.calls), 0)::bigint from pg_stat_statements s \
                     join pg_database d on d.oid = s.dbid \
                     where d.datname = current_database() and s.query not like '%pg_stat_%'";
                sqlx::query_scalar(sql).fetch_one(inside).await?
            }
            Self::Transactions { outside, database } => {
                let sql = "select xact_commit + xact_rollback from pg_stat_database where datname = $1";
                sqlx::query_scalar(sql).bind(&*database).fetch_one(outside).await?
            }
        })
    }

    /// What it counts, and by what.
    fn describe(&self) -> &'static str {
        match self {
            Self::Statements(_) => "statements by pg_stat_statements",
            Self::Transactions { .. } => "transactions by pg_stat_database",
        }
    }

    /// What the relay of this log costs that has delivered everything: waits until it has given its lane back, and counts.
    pub(crate) async fn idle(
        &mut self,
        report: &Report,
        bench: &Bench,
        quick: bool,
    ) -> Result<Idle, AnyError> {
        let window = Duration::from_secs(if quick { 15 } else { 60 });
        bench.run("vacuum (analyze)").await?;
        report.say("waiting until the relay has given its lane back");
        tokio::time::sleep(GIVEN_BACK).await;
        given_back(bench).await?;
        tokio::time::sleep(PASSED_ON).await;
        let before = written(bench).await?;
        // The look itself is passed on when its connection has ended.
        tokio::time::sleep(Duration::from_secs(2)).await;
        report.say(&format!("counting for {window:?}"));
        let began = Instant::now();
        let first = self.read().await?;
        tokio::time::sleep(window).await;
        let counted = self.read().await? - first;
        let rate = counted as f64 / began.elapsed().as_secs_f64();
        tokio::time::sleep(PASSED_ON).await;
        let after = written(bench).await?;
        Ok(Idle {
            detail: format!(
                "{counted} {} in {window:?}, default settings, one subscription",
                self.describe()
            ),
            rate,
            dead: (after.dead - before.dead).max(0),
            changed: after.changed - before.changed,
            minutes: began.elapsed().as_secs_f64() / 60.0,
        })
    }
}

async fn written(bench: &Bench) -> Result<Written, AnyError> {
    let options = (*bench.pool.connect_options()).clone();
    let mut connection = PgConnection::connect_with(&options).await?;
    let sql = "select coalesce(sum(n_dead_tup), 0)::bigint, coalesce(sum(n_tup_upd + n_tup_del), 0)::bigint \
         from pg_stat_user_tables where schemaname = $1";
    let (dead, changed) = sqlx::query_as(sql).bind(&bench.schema).fetch_one(&mut connection).await?;
    let sql = format!("select count(*) from {}.lane where lease_owner is not null", bench.schema);
    let held = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(Written { dead, changed, held })
}

/// Waits until nobody holds a lane.
async fn given_back(bench: &Bench) -> Result<(), AnyError> {
    let end = Instant::now() + GIVEN_BACK * 6;
    while written(bench).await?.held > 0 {
        if Instant::now() > end {
            return Err("the relay still holds its lane".into());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Measures on a log in a database of its own, which goes away afterwards, and with what counts its statements.
pub(crate) async fn in_own_database(
    measure: impl AsyncFnOnce(&Bench, &mut Counter) -> Result<(), AnyError>,
) -> Result<(), AnyError> {
    let database = format!("bench_{}", Uuid::now_v7().simple());
    let mut outside = PgConnection::connect_with(&server()?).await?;
    let create = format!("create database {database}");
    sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut outside).await?;
    // Where it is loaded it may be off, so as not to be measured elsewhere; where it is not, this says nothing.
    let track = format!("alter database {database} set pg_stat_statements.track = 'top'");
    let _ = sqlx::raw_sql(AssertSqlSafe(track)).execute(&mut outside).await;
    let measured = async {
        let bench = Bench::on(server()?.database(&database), 4).await?;
        let mut counter = Counter::of(&bench, &database).await?;
        measure(&bench, &mut counter).await
    };
    let measured = measured.await;
    let drop = format!("drop database {database} with (force)");
    sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut outside).await?;
    outside.close().await?;
    measured
}
