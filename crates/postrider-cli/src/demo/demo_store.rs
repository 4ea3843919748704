//! The database that the shop is in, and what its tills, its handlers and its summary do there.
//!
//! The statements are the same in every database; what is not is in a file of its own.

mod mysql;
mod postgres;
mod sqlite;

use postrider::Uuid;
use postrider::store::OutboxSource;

pub(crate) use mysql::Mysql;
pub(crate) use postgres::Postgres;
pub(crate) use sqlite::{FILE, Sqlite};

use super::shop::Sale;
use crate::Failure;
use crate::database::SharedStore;

/// What a handler did, as the table `effect` has it.
pub(crate) struct Effect<'a> {
    pub(crate) subscription: &'a str,
    pub(crate) event_id: Uuid,
    pub(crate) customer: &'a str,
    pub(crate) number: i64,
    pub(crate) relay: &'a str,
}

/// What was counted of one subscription, as tally.sql names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) recorded: i64,
    pub(crate) delivered: i64,
    pub(crate) again: i64,
    pub(crate) retried: i64,
    pub(crate) dead: i64,
    pub(crate) lost: i64,
    pub(crate) invented: i64,
    pub(crate) out_of_order: i64,
}

/// The database of the demo's shop, as one process has it.
pub(crate) trait DemoStore: Clone + Send + Sync + 'static {
    /// What its relays are made on.
    type Outbox: OutboxSource;

    fn outbox(&self) -> &Self::Outbox;

    /// What it is called.
    fn name(&self) -> &'static str;

    /// Both sides of its log.
    fn log(&self) -> impl Future<Output = Result<SharedStore, Failure>> + Send;

    /// What an application does: it changes its data and records the event, all or nothing.
    fn sell(&self, sale: Sale) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Writes down what a handler did, with the connection that does it.
    fn did(
        connection: &mut <Self::Outbox as OutboxSource>::Connection,
        effect: &Effect<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The same outside any transaction.
    fn did_alone(&self, effect: &Effect<'_>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Writes down that a handler could not.
    fn could_not(&self, effect: &Effect<'_>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Makes the effect before this one of the same customer look like a later one: a broken promise.
    fn overtake(&self, effect: &Effect<'_>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// What a statement counts that takes these texts.
    fn count(
        &self,
        statement: &'static str,
        texts: &[&str],
    ) -> impl Future<Output = Result<i64, Failure>> + Send;

    /// What became of a subscription.
    fn tally(&self, subscription: &str) -> impl Future<Output = Result<Counts, Failure>> + Send;

    /// Leaves it in a state that is easy to look at afterwards.
    fn tidy(&self) -> impl Future<Output = Result<(), Failure>> + Send;
}

const CHANGE: &str = "update customer set changes = changes + 1 where id = ?";
const NUMBER: &str = "select changes from customer where id = ?";
const CHANGED: &str = "insert into changed (event_id, customer, number) values (?, ?, ?)";
const REGRETTED: &str = "insert into rolled_back (event_id) values (?)";
const DID: &str =
    "insert into effect (subscription, event_id, customer, number, relay) values (?, ?, ?, ?, ?)";
const COULD_NOT: &str = "insert into failed_call (subscription, event_id) values (?, ?)";
const OVERTAKE: &str =
    "update effect set n = (select above from (select max(n) + 1 as above from effect) as top)
     where n = (select below from (select max(n) as below from effect
                                   where subscription = ? and customer = ? and number < ?) as last)";

/// Implements it for a database: the drivers have the same words, but no common type for them.
macro_rules! demo_store {
    ($store:ty, $outbox:ty, $connection:ty) => {
        impl DemoStore for $store {
            type Outbox = $outbox;

            fn outbox(&self) -> &$outbox {
                &self.outbox
            }

            fn name(&self) -> &'static str {
                self.name
            }

            async fn log(&self) -> Result<SharedStore, Failure> {
                self.store_of_log().await
            }

            async fn sell(&self, sale: Sale) -> Result<(), Failure> {
                let mut tx = self.begin().await?;
                query(Self::sql(CHANGE)).bind(&sale.customer).execute(&mut *tx).await?;
                let number =
                    query(Self::sql(NUMBER)).bind(&sale.customer).fetch_one(&mut *tx).await?.try_get(0)?;
                let event = sale.event(number)?;
                let event_id = self.outbox.record(&mut tx, &event).await?;
                let changed = query(Self::sql(CHANGED)).bind(event_id).bind(&sale.customer).bind(number);
                changed.execute(&mut *tx).await?;
                if sale.regretted {
                    tx.rollback().await?;
                    query(Self::sql(REGRETTED)).bind(event_id).execute(&self.pool).await?;
                } else {
                    tx.commit().await?;
                }
                Ok(())
            }

            async fn did(connection: &mut $connection, effect: &Effect<'_>) -> Result<(), Failure> {
                let did = query(Self::sql(DID))
                    .bind(effect.subscription)
                    .bind(effect.event_id)
                    .bind(effect.customer);
                did.bind(effect.number).bind(effect.relay).execute(connection).await?;
                Ok(())
            }

            async fn did_alone(&self, effect: &Effect<'_>) -> Result<(), Failure> {
                let mut connection = self.pool.acquire().await?;
                Self::did(&mut connection, effect).await
            }

            async fn could_not(&self, effect: &Effect<'_>) -> Result<(), Failure> {
                let could_not = query(Self::sql(COULD_NOT)).bind(effect.subscription).bind(effect.event_id);
                could_not.execute(&self.pool).await?;
                Ok(())
            }

            async fn overtake(&self, effect: &Effect<'_>) -> Result<(), Failure> {
                let overtake = query(Self::sql(OVERTAKE))
                    .bind(effect.subscription)
                    .bind(effect.customer)
                    .bind(effect.number);
                overtake.execute(&self.pool).await?;
                Ok(())
            }

            async fn count(&self, statement: &'static str, texts: &[&str]) -> Result<i64, Failure> {
                let mut count = query(Self::sql(statement));
                for text in texts {
                    count = count.bind(*text);
                }
                Ok(count.fetch_one(&self.pool).await?.try_get(0)?)
            }

            async fn tally(&self, subscription: &str) -> Result<Counts, Failure> {
                let tally = query(Self::sql(include_str!("../../../sql/demo/tally.sql")));
                let tally = tally.bind(subscription).bind(subscription).bind(subscription);
                let row = tally.fetch_one(&self.pool).await?;
                Ok(Counts {
                    recorded: row.try_get("recorded")?,
                    delivered: row.try_get("delivered")?,
                    again: row.try_get("again")?,
                    retried: row.try_get("retried")?,
                    dead: row.try_get("dead")?,
                    lost: row.try_get("lost")?,
                    invented: row.try_get("invented")?,
                    out_of_order: row.try_get("out_of_order")?,
                })
            }

            async fn tidy(&self) -> Result<(), Failure> {
                self.tidied().await
            }
        }
    };
}
use demo_store;
