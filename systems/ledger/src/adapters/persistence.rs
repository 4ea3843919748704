//! The ledger on MariaDB or MySQL.

use postrider::mysql::Outbox;
use sqlx::mysql::{MySqlDatabaseError, MySqlRow};
use sqlx::{MySql, MySqlPool, Row};
use time::OffsetDateTime;

use crate::adapters::outbox;
use crate::application::port::{LedgerPort, OutboxEventPort, UnitOfWork};
use crate::application::problem::{Answer, Problem};
use crate::domain::balance::Balance;
use crate::domain::event::LedgerEvent;
use crate::domain::journal::{JournalEntry, Side};
use crate::domain::transaction::{Transaction, TransactionType};
use crate::domain::{AccountId, TransactionId};

/// Errors of the server that say that somebody else was faster: a row that changed since it was read (from MariaDB 11.6 on), a
/// second row with one key, a deadlock.
const OTHERS_WERE_FASTER: [u16; 3] = [1020, 1062, 1213];

/// The ledger in a database.
#[derive(Debug, Clone)]
pub struct MySqlLedger {
    pool: MySqlPool,
    outbox: Outbox,
}

impl MySqlLedger {
    /// The ledger of a database whose tables exist.
    pub fn new(pool: MySqlPool, outbox: Outbox) -> Self {
        Self { pool, outbox }
    }

    /// Its connections.
    pub fn pool(&self) -> &MySqlPool {
        &self.pool
    }
}

impl LedgerPort for MySqlLedger {
    type Unit = Unit;

    async fn begin(&self) -> Answer<Unit> {
        let tx = self.pool.begin().await.map_err(problem)?;
        Ok(Unit { tx, outbox: self.outbox.clone() })
    }
}

/// One transaction of the database.
#[derive(Debug)]
pub struct Unit {
    tx: sqlx::Transaction<'static, MySql>,
    outbox: Outbox,
}

fn problem(error: sqlx::Error) -> Problem {
    let number = |error: &sqlx::Error| {
        let error = error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?;
        Some(error.number())
    };
    match number(&error) {
        Some(number) if OTHERS_WERE_FASTER.contains(&number) => Problem::Conflict,
        _ => Problem::broken(error),
    }
}

fn unknown(what: &str) -> Problem {
    Problem::broken(format!("the database has an unknown {what}"))
}

fn entry(row: &MySqlRow) -> Answer<JournalEntry> {
    let side: String = row.try_get("side").map_err(problem)?;
    Ok(JournalEntry {
        account: row.try_get("account_id").map_err(problem)?,
        side: Side::named(&side).ok_or_else(|| unknown("side of an entry"))?,
        amount: row.try_get("amount").map_err(problem)?,
    })
}

impl UnitOfWork for Unit {
    async fn find_transaction(&mut self, id: TransactionId) -> Answer<Option<Transaction>> {
        let sql = "select type, reverses, reversed_by, memo, occurred_at from transactions where id = ?";
        let row = sqlx::query(sql).bind(id).fetch_optional(&mut *self.tx).await.map_err(problem)?;
        let Some(row) = row else { return Ok(None) };
        let kind: String = row.try_get("type").map_err(problem)?;
        let sql = "select account_id, side, amount from journal_entries where transaction_id = ? order by id";
        let rows = sqlx::query(sql).bind(id).fetch_all(&mut *self.tx).await.map_err(problem)?;
        Ok(Some(Transaction {
            id,
            kind: TransactionType::named(&kind).ok_or_else(|| unknown("type of a transaction"))?,
            reverses: row.try_get("reverses").map_err(problem)?,
            reversed_by: row.try_get("reversed_by").map_err(problem)?,
            entries: rows.iter().map(entry).collect::<Answer<_>>()?,
            memo: row.try_get("memo").map_err(problem)?,
            occurred_at: row.try_get::<OffsetDateTime, _>("occurred_at").map_err(problem)?,
        }))
    }

    async fn balance(&mut self, account: AccountId) -> Answer<Balance> {
        let sql = "select amount, version from balances where account_id = ?";
        let row: Option<(i64, i64)> =
            sqlx::query_as(sql).bind(account).fetch_optional(&mut *self.tx).await.map_err(problem)?;
        let found = row.map(|(amount, version)| Balance { account, amount, version });
        Ok(found.unwrap_or_else(|| Balance::empty(account)))
    }

    async fn save_transaction(&mut self, transaction: &Transaction) -> Answer<()> {
        let sql = "insert into transactions (id, type, reverses, memo, occurred_at) values (?, ?, ?, ?, ?)";
        let insert = sqlx::query(sql).bind(transaction.id).bind(transaction.kind.as_str());
        let insert = insert.bind(transaction.reverses).bind(&transaction.memo).bind(transaction.occurred_at);
        insert.execute(&mut *self.tx).await.map_err(problem).map(drop)
    }

    async fn save_entries(&mut self, transaction: &Transaction) -> Answer<()> {
        let sql =
            "insert into journal_entries (transaction_id, account_id, side, amount) values (?, ?, ?, ?)";
        for entry in &transaction.entries {
            let insert = sqlx::query(sql).bind(transaction.id).bind(entry.account);
            let insert = insert.bind(entry.side.as_str()).bind(entry.amount);
            insert.execute(&mut *self.tx).await.map_err(problem)?;
        }
        Ok(())
    }

    async fn save_balance(&mut self, balance: &Balance) -> Answer<()> {
        if balance.version == 0 {
            // The first writer makes the row; a second one clashes with it, and begins again.
            let sql = "insert into balances (account_id, amount, version) values (?, ?, 1)";
            let insert = sqlx::query(sql).bind(balance.account).bind(balance.amount);
            return insert.execute(&mut *self.tx).await.map_err(problem).map(drop);
        }
        let sql =
            "update balances set amount = ?, version = version + 1 where account_id = ? and version = ?";
        let update = sqlx::query(sql).bind(balance.amount).bind(balance.account).bind(balance.version);
        let changed = update.execute(&mut *self.tx).await.map_err(problem)?;
        if changed.rows_affected() == 0 { Err(Problem::Conflict) } else { Ok(()) }
    }

    async fn mark_reversed(&mut self, id: TransactionId, by: TransactionId) -> Answer<()> {
        let sql =
            "update transactions set status = 'REVERSED', reversed_by = ? where id = ? and status = 'POSTED'";
        let marked = sqlx::query(sql).bind(by).bind(id).execute(&mut *self.tx).await.map_err(problem)?;
        if marked.rows_affected() == 0 { Err(Problem::Conflict) } else { Ok(()) }
    }

    async fn commit(self) -> Answer<()> {
        self.tx.commit().await.map_err(problem)
    }
}

impl OutboxEventPort for Unit {
    async fn save_event(&mut self, event: &dyn LedgerEvent) -> Answer<()> {
        let event = outbox::new_event(event).map_err(outbox::problem)?;
        outbox::record(&self.outbox, &mut self.tx, &event).await
    }
}
