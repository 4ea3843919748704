//! Backtests: a job over candles of the past, whose result is an event.

use uuid::Uuid;

use crate::application::{Answer, EventBus, Exchange, Fault, Transactions, Work};
use crate::domain::{About, BacktestFinished, RunBacktest, Timestamp};

/// Asks for backtests, and runs them.
#[derive(Debug, Clone)]
pub struct Backtests<D, X> {
    transactions: D,
    exchange: X,
}

impl<D: Transactions, X: Exchange> Backtests<D, X> {
    /// With its ports.
    pub fn new(transactions: D, exchange: X) -> Self {
        Self { transactions, exchange }
    }

    /// Asks for a backtest: the job and its command are one transaction.
    pub async fn ask(&self, about: &About, now: Timestamp) -> Answer<Uuid> {
        let job_id = Uuid::new_v4();
        let mut work = self.transactions.begin().await?;
        work.open_job(job_id, &about.market, now).await?;
        work.publish(&RunBacktest { job_id, market: about.market.clone() }, about).await?;
        work.commit().await?;
        Ok(job_id)
    }

    /// Runs it. The result and its event are one transaction; a second run changes nothing.
    pub async fn run(&self, command: &RunBacktest, about: &About, now: Timestamp) -> Answer<()> {
        if self.has_result(command).await? {
            return Ok(());
        }
        let candles = self.exchange.candles(&command.market).await?;
        let (Some(first), Some(last)) = (candles.first(), candles.last()) else {
            return Err(Fault::Reject(format!("there are no candles of {}", command.market)));
        };
        let profit = last - first;
        let mut work = self.transactions.begin().await?;
        if work.finish_job(command.job_id, profit, now).await? {
            let finished = BacktestFinished { job_id: command.job_id, candles: candles.len(), profit };
            work.publish(&finished, about).await?;
            work.commit().await?;
        }
        Ok(())
    }

    async fn has_result(&self, command: &RunBacktest) -> Answer<bool> {
        let found = self.transactions.begin().await?.has_result(command.job_id).await?;
        found.ok_or_else(|| Fault::Missing(format!("there is no backtest {}", command.job_id)))
    }
}
