//! The port of the database: one body for PostgreSQL and SQLite, which take the same statements.

use sqlx::{Postgres, Sqlite, Transaction};
use uuid::Uuid;

use crate::adapters::bus::{self, Bus};
use crate::adapters::events::new_event;
use crate::adapters::settings::Settings;
use crate::application::{Answer, EventBus, Fault, Transactions, Work};
use crate::domain::{
    About, Attempt, Intent, KillSwitchChanged, Message, Reason, Side, Signal, Status, Timestamp, identifier,
    messages, streams,
};

/// A transaction, and the bus that messages go through.
pub struct Unit<D: sqlx::Database> {
    tx: Transaction<'static, D>,
    bus: Bus<D::Connection>,
}

type AttemptRow = (Uuid, i32, String, String, Option<String>, Timestamp);
type IntentRow = (Uuid, String, String, String, String, String, i64, i64);

fn attempt((intent_id, no, status, reason, order_id, since): AttemptRow) -> Answer<Attempt> {
    let status = Status::parse(&status).ok_or_else(|| Fault::Reject(format!("{status} is no state")))?;
    let is_stray = reason == Reason::Stray.as_str();
    Ok(Attempt { intent_id, no, status, order_id, is_stray, since })
}

fn intent((id, owner, strategy, market, trace, side, price, volume): IntentRow) -> Intent {
    let side = if side == "BUY" { Side::Buy } else { Side::Sell };
    Intent { id, about: About { owner, strategy, market, trace, cause: None }, side, price, volume }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Buy => "BUY",
        Side::Sell => "SELL",
    }
}

const ATTEMPTS: &str =
    "select order_intent_id, attempt_no, status, reason, order_id, updated_at from order_attempt";

macro_rules! database {
    ($(#[$doc:meta])* $transactions:ident on $database:ty, $pool:ty, $outbox:ty, $begin:expr, $lock:literal, $tables:literal) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $transactions {
            /// The outbox, for relays and consumers.
            pub outbox: $outbox,
            bus: Bus<<$database as sqlx::Database>::Connection>,
        }

        impl $transactions {
            /// Creates what is missing: the tables of Postrider, those of everbit, and the document's table as a view.
            pub async fn migrate(pool: &$pool) -> Answer<()> {
                <$outbox>::migrated(pool).await?;
                sqlx::raw_sql(include_str!($tables)).execute(pool).await?;
                Ok(())
            }

            /// The transactions on a database that is migrated, with the bus of the settings.
            pub async fn open(pool: &$pool, settings: &Settings) -> Answer<Self> {
                let builder = <$outbox>::builder().source("everbit");
                let builder = builder.allowed_streams(streams::ALL).allowed_types(messages::ALL);
                let outbox = builder.connect(pool).await?;
                let bus = bus::of(settings, outbox.clone()).await.map_err(Fault::Reject)?;
                Ok(Self { outbox, bus })
            }
        }

        impl Transactions for $transactions {
            type Work = Unit<$database>;

            async fn begin(&self) -> Answer<Self::Work> {
                let begin: fn(&$outbox) -> _ = $begin;
                Ok(Unit { tx: begin(&self.outbox).await?, bus: self.bus.clone() })
            }
        }

        impl EventBus for Unit<$database> {
            async fn publish<M: Message>(&mut self, message: &M, about: &About) -> Answer<Uuid> {
                let event = new_event(message, about)?;
                Ok(self.bus.publish(&mut self.tx, &event).await?)
            }
        }

        impl Work for Unit<$database> {
            async fn open_intent(&mut self, signal: &Signal, now: Timestamp) -> Answer<bool> {
                let (about, side) = (&signal.about, side(signal.side));
                let sql = "insert into signal (id, owner_id, strategy_key, market, side, created_at)
                           values ($1, $2, $3, $4, $5, $6) on conflict do nothing";
                let query = sqlx::query(sql).bind(signal.id).bind(&about.owner).bind(&about.strategy);
                let query = query.bind(&about.market).bind(side).bind(now);
                if query.execute(&mut *self.tx).await?.rows_affected() == 0 {
                    return Ok(false);
                }
                let sql = "insert into order_intent
                           (id, signal_id, owner_id, strategy_key, market, trace, side, price, volume, created_at)
                           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
                let query = sqlx::query(sql).bind(signal.intent_id()).bind(signal.id).bind(&about.owner);
                let query = query.bind(&about.strategy).bind(&about.market).bind(&about.trace).bind(side);
                query.bind(signal.price).bind(signal.volume).bind(now).execute(&mut *self.tx).await?;
                Ok(true)
            }

            async fn intent(&mut self, id: Uuid) -> Answer<Option<Intent>> {
                let sql = "select id, owner_id, strategy_key, market, trace, side, price, volume
                           from order_intent where id = $1";
                let row: Option<IntentRow> = sqlx::query_as(sql).bind(id).fetch_optional(&mut *self.tx).await?;
                Ok(row.map(intent))
            }

            async fn lock_intent(&mut self, id: Uuid) -> Answer<Option<Intent>> {
                let sql = concat!(
                    "select id, owner_id, strategy_key, market, trace, side, price, volume
                     from order_intent where id = $1",
                    $lock
                );
                let row: Option<IntentRow> = sqlx::query_as(sql).bind(id).fetch_optional(&mut *self.tx).await?;
                Ok(row.map(intent))
            }

            async fn attempt(&mut self, identifier: &str) -> Answer<Option<Attempt>> {
                let sql = select_attempts!(" where identifier = $1");
                let row = sqlx::query_as(sql).bind(identifier).fetch_optional(&mut *self.tx).await?;
                row.map(attempt).transpose()
            }

            async fn attempts(&mut self, intent: Uuid) -> Answer<Vec<Attempt>> {
                let sql = select_attempts!(" where order_intent_id = $1 order by attempt_no desc");
                let rows: Vec<AttemptRow> = sqlx::query_as(sql).bind(intent).fetch_all(&mut *self.tx).await?;
                rows.into_iter().map(attempt).collect()
            }

            async fn open_attempt(
                &mut self,
                intent: Uuid,
                no: i32,
                (status, reason): (Status, Reason),
                now: Timestamp,
            ) -> Answer<bool> {
                let sql = "insert into order_attempt
                           (order_intent_id, attempt_no, identifier, status, reason, created_at, updated_at)
                           values ($1, $2, $3, $4, $5, $6, $6) on conflict do nothing";
                let query = sqlx::query(sql).bind(intent).bind(no).bind(identifier(intent, no));
                let query = query.bind(status.as_str()).bind(reason.as_str()).bind(now);
                Ok(query.execute(&mut *self.tx).await?.rows_affected() == 1)
            }

            async fn move_attempt(
                &mut self,
                attempt: &Attempt,
                (status, reason): (Status, Reason),
                order_id: Option<&str>,
                now: Timestamp,
            ) -> Answer<bool> {
                let sql = "update order_attempt set status = $1, reason = $2, order_id = $3, updated_at = $4
                           where identifier = $5 and status = $6";
                let query = sqlx::query(sql).bind(status.as_str()).bind(reason.as_str()).bind(order_id);
                let query = query.bind(now).bind(attempt.identifier()).bind(attempt.status.as_str());
                Ok(query.execute(&mut *self.tx).await?.rows_affected() == 1)
            }

            async fn unsettled(&mut self) -> Answer<Vec<Attempt>> {
                let sql = select_attempts!(" where status in ('REQUESTED', 'UNKNOWN') order by updated_at");
                let rows: Vec<AttemptRow> = sqlx::query_as(sql).fetch_all(&mut *self.tx).await?;
                rows.into_iter().map(attempt).collect()
            }

            async fn unfilled(&mut self) -> Answer<Vec<Attempt>> {
                let sql = select_attempts!(
                    " a where status = 'ACKED'
                      and (select coalesce(sum(f.volume), 0) from fill f where f.identifier = a.identifier)
                          < (select i.volume from order_intent i where i.id = a.order_intent_id)"
                );
                let rows: Vec<AttemptRow> = sqlx::query_as(sql).fetch_all(&mut *self.tx).await?;
                rows.into_iter().map(attempt).collect()
            }

            async fn fill(
                &mut self,
                intent: &Intent,
                identifier: &str,
                executed: i64,
                now: Timestamp,
            ) -> Answer<Option<i64>> {
                let sql = "select cast(coalesce(sum(volume), 0) as bigint) from fill where identifier = $1";
                let booked = sqlx::query_scalar::<_, i64>(sql).bind(identifier);
                let booked = booked.fetch_one(&mut *self.tx).await?;
                let volume = executed - booked;
                if volume <= 0 {
                    return Ok(None);
                }
                let sql = "insert into fill (identifier, booked_before, order_intent_id, volume, price, created_at)
                           values ($1, $2, $3, $4, $5, $6) on conflict do nothing";
                let query = sqlx::query(sql).bind(identifier).bind(booked).bind(intent.id).bind(volume);
                let query = query.bind(intent.price).bind(now);
                if query.execute(&mut *self.tx).await?.rows_affected() == 0 {
                    return Ok(None);
                }
                let change = if intent.side == Side::Buy { volume } else { -volume };
                let sql = "insert into position (owner_id, market, volume) values ($1, $2, $3)
                           on conflict (owner_id, market) do update set volume = position.volume + excluded.volume";
                let query = sqlx::query(sql).bind(&intent.about.owner).bind(&intent.about.market);
                query.bind(change).execute(&mut *self.tx).await?;
                Ok(Some(volume))
            }

            async fn kill_switch(&mut self) -> Answer<bool> {
                let sql = "select value from setting where key = $1";
                let query = sqlx::query_scalar::<_, String>(sql).bind(KillSwitchChanged::SETTING);
                Ok(query.fetch_optional(&mut *self.tx).await?.as_deref() == Some("on"))
            }

            async fn set_kill_switch(&mut self, engaged: bool, now: Timestamp) -> Answer<()> {
                let sql = "insert into setting (key, value, updated_at) values ($1, $2, $3)
                           on conflict (key) do update set value = excluded.value, updated_at = excluded.updated_at";
                let query = sqlx::query(sql).bind(KillSwitchChanged::SETTING);
                let query = query.bind(if engaged { "on" } else { "off" }).bind(now);
                query.execute(&mut *self.tx).await?;
                Ok(())
            }

            async fn log_notice(&mut self, event_id: Uuid, text: &str, now: Timestamp) -> Answer<bool> {
                let sql = "insert into notification_log (event_id, text, created_at) values ($1, $2, $3)
                           on conflict do nothing";
                let query = sqlx::query(sql).bind(event_id).bind(text).bind(now);
                Ok(query.execute(&mut *self.tx).await?.rows_affected() == 1)
            }

            async fn log_operation(&mut self, event_id: Uuid, text: &str, now: Timestamp) -> Answer<bool> {
                let sql = "insert into operation_log (event_id, text, created_at) values ($1, $2, $3)
                           on conflict do nothing";
                let query = sqlx::query(sql).bind(event_id).bind(text).bind(now);
                Ok(query.execute(&mut *self.tx).await?.rows_affected() == 1)
            }

            async fn open_job(&mut self, id: Uuid, market: &str, now: Timestamp) -> Answer<()> {
                let sql = "insert into backtest_job (id, market, status, created_at) values ($1, $2, 'QUEUED', $3)";
                sqlx::query(sql).bind(id).bind(market).bind(now).execute(&mut *self.tx).await?;
                Ok(())
            }

            async fn has_result(&mut self, id: Uuid) -> Answer<Option<bool>> {
                let sql = "select status from backtest_job where id = $1";
                let status = sqlx::query_scalar::<_, String>(sql).bind(id);
                Ok(status.fetch_optional(&mut *self.tx).await?.map(|status| status == "FINISHED"))
            }

            async fn finish_job(&mut self, id: Uuid, profit: i64, now: Timestamp) -> Answer<bool> {
                let sql = "update backtest_job set status = 'FINISHED', profit = $1, finished_at = $2
                           where id = $3 and status = 'QUEUED'";
                let query = sqlx::query(sql).bind(profit).bind(now).bind(id);
                Ok(query.execute(&mut *self.tx).await?.rows_affected() == 1)
            }

            async fn commit(self) -> Answer<()> {
                Ok(self.tx.commit().await?)
            }
        }
    };
}

/// Attempts, by a condition.
macro_rules! select_attempts {
    ($rest:literal) => {
        sqlx::AssertSqlSafe(format!("{ATTEMPTS}{}", $rest))
    };
}

database! {
    /// everbit on PostgreSQL.
    PostgresTransactions on Postgres, sqlx::PgPool, postrider::postgres::Outbox,
    |outbox| { let pool = outbox.pool().clone(); async move { pool.begin().await } },
    // Whoever only refers to the intent, as a fill does, does not wait.
    " for no key update",
    "../../migrations/postgres.sql"
}

database! {
    /// everbit on SQLite.
    SqliteTransactions on Sqlite, sqlx::SqlitePool, postrider::sqlite::Outbox,
    |outbox| { let outbox = outbox.clone(); async move { outbox.begin().await } },
    // There is one writer, and a transaction is it from its begin.
    "",
    "../../migrations/sqlite.sql"
}
