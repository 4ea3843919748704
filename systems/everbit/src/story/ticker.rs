//! Market data, which must not go through the queue: the story tries to publish some.

use serde::{Deserialize, Serialize};

use crate::adapters::bus::Kind;
use crate::adapters::settings::Settings;
use crate::adapters::store::{PostgresTransactions, SqliteTransactions};
use crate::application::{Answer, EventBus, Transactions};
use crate::domain::{About, Message};
use crate::story::counts::Database;

/// A price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickerReceived {
    /// In KRW.
    pub price: i64,
}

impl Message for TickerReceived {
    const NAME: &'static str = "TickerReceived";
    const STREAM: &'static str = "everbit.market.ticker";
    const AGGREGATE: &'static str = "Market";

    fn aggregate_id(&self) -> String {
        "KRW-BTC".to_owned()
    }
}

/// Tries to publish a ticker, and returns what is said to it; nothing if it was published.
pub async fn publish(database: &Database) -> String {
    let settings = Settings::of(&database.url(), Kind::Outbox);
    let tried = match database {
        Database::Postgres(_, pool) => tried(PostgresTransactions::open(pool, &settings).await).await,
        Database::Sqlite(_, pool) => tried(SqliteTransactions::open(pool, &settings).await).await,
    };
    tried.err().map(|fault| fault.to_string()).unwrap_or_default()
}

async fn tried<D: Transactions>(transactions: Answer<D>) -> Answer<()> {
    let all = || "*".to_owned();
    let about = About { owner: all(), strategy: all(), market: all(), trace: all(), cause: None };
    let mut work = transactions?.begin().await?;
    work.publish(&TickerReceived { price: 50_000_000 }, &about).await.map(drop)
}
