//! Units of work on PostgreSQL: one transaction for the balances, the transfer and its event.

use postrider::postgres::Outbox;
use sqlx::{PgPool, Postgres};
use uuid::Uuid;

use super::outbox::event_of;
use crate::application::ports::{Fault, Origin, Unit, Units};
use crate::domain::{Account, Transaction, TransferCompleteEvent};

/// Brings the schema of Postrider and the tables of this system up to date.
pub async fn migrate(pool: &PgPool) -> Result<Outbox, Fault> {
    let outbox = Outbox::migrated(pool).await?;
    sqlx::raw_sql(include_str!("../../migrations/001_transfers.sql")).execute(pool).await?;
    sqlx::raw_sql(include_str!("../../migrations/002_transfer_events.sql")).execute(pool).await?;
    Ok(outbox)
}

/// Begins transactions, and knows the accounts.
#[derive(Debug, Clone)]
pub struct PgUnits {
    outbox: Outbox,
}

impl PgUnits {
    /// On the database of this outbox.
    pub fn new(outbox: Outbox) -> Self {
        Self { outbox }
    }

    /// Opens an account with a balance; whether the number was free.
    pub async fn open_account(&self, account: &Account) -> sqlx::Result<bool> {
        let sql = "insert into accounts (id, balance) values ($1, $2) on conflict (id) do nothing";
        let opened = sqlx::query(sql).bind(&account.id).bind(account.balance).execute(self.outbox.pool());
        Ok(opened.await?.rows_affected() == 1)
    }

    /// An account.
    pub async fn account(&self, id: &str) -> sqlx::Result<Option<Account>> {
        let sql = "select id, balance from accounts where id = $1";
        let row: Option<(String, i64)> =
            sqlx::query_as(sql).bind(id).fetch_optional(self.outbox.pool()).await?;
        Ok(row.map(|(id, balance)| Account { id, balance }))
    }
}

impl Units for PgUnits {
    type Unit = PgUnit;

    async fn begin(&self) -> Result<PgUnit, Fault> {
        Ok(PgUnit { transaction: self.outbox.pool().begin().await?, outbox: self.outbox.clone() })
    }
}

/// A transaction.
#[derive(Debug)]
pub struct PgUnit {
    transaction: sqlx::Transaction<'static, Postgres>,
    outbox: Outbox,
}

impl Unit for PgUnit {
    async fn lock(&mut self, ids: [&str; 2]) -> Result<Vec<Account>, Fault> {
        // In one order for everybody: two transfers between the same accounts don't wait for each other in a circle.
        let sql = "select id, balance from accounts where id = any ($1) order by id for update";
        let rows: Vec<(String, i64)> = sqlx::query_as(sql)
            .bind(ids.map(str::to_owned).to_vec())
            .fetch_all(&mut *self.transaction)
            .await?;
        Ok(rows.into_iter().map(|(id, balance)| Account { id, balance }).collect())
    }

    async fn find(&mut self, id: Uuid) -> Result<Option<(Transaction, Uuid)>, Fault> {
        let sql = "select from_account, to_account, amount, memo, completed_at, event_id from transactions where id = $1";
        let row: Option<(String, String, i64, String, i64, Uuid)> =
            sqlx::query_as(sql).bind(id).fetch_optional(&mut *self.transaction).await?;
        Ok(row.map(|(from_account, to_account, amount, memo, completed_at, event)| {
            (Transaction { id, from_account, to_account, amount, memo, completed_at }, event)
        }))
    }

    async fn save_accounts(&mut self, accounts: [&Account; 2]) -> Result<(), Fault> {
        let sql = "update accounts a set balance = v.balance
            from unnest($1::text[], $2::bigint[]) as v (id, balance) where a.id = v.id";
        let ids: Vec<String> = accounts.iter().map(|account| account.id.clone()).collect();
        let balances: Vec<i64> = accounts.iter().map(|account| account.balance).collect();
        sqlx::query(sql).bind(ids).bind(balances).execute(&mut *self.transaction).await?;
        Ok(())
    }

    async fn save_transaction(&mut self, transaction: &Transaction, event: Uuid) -> Result<bool, Fault> {
        let sql =
            "insert into transactions (id, from_account, to_account, amount, memo, completed_at, event_id)
            values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do nothing";
        let save = sqlx::query(sql).bind(transaction.id).bind(&transaction.from_account);
        let save = save.bind(&transaction.to_account).bind(transaction.amount).bind(&transaction.memo);
        let saved = save.bind(transaction.completed_at).bind(event).execute(&mut *self.transaction).await?;
        Ok(saved.rows_affected() == 1)
    }

    async fn publish(&mut self, event: &TransferCompleteEvent, origin: &Origin) -> Result<Uuid, Fault> {
        let event = event_of(event, origin)?;
        Ok(self.outbox.record(&mut self.transaction, &event).await?)
    }

    async fn commit(self) -> Result<(), Fault> {
        Ok(self.transaction.commit().await?)
    }
}
