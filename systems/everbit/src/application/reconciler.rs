//! The reconciler: asks the exchange what became of orders, and follows each until all of it is executed. It never sends one.

use crate::application::{Answer, EventBus, Exchange, Fault, Transactions, Work};
use crate::domain::{Attempt, OrderAccepted, OrderFilled, Placed, Reason, Status, Timestamp};

/// Asks about attempts that nobody knows the outcome of, and about fills.
#[derive(Debug, Clone)]
pub struct Reconciler<D, X> {
    transactions: D,
    exchange: X,
    grace: Timestamp,
}

/// What a round found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// The exchange has them.
    pub found: usize,
    /// The exchange does not have them.
    pub not_found: usize,
    /// More of them was executed.
    pub filled: usize,
    /// These could not be asked for or written down, by their identifiers. The others of the round were.
    pub failed: Vec<(String, Fault)>,
}

impl<D: Transactions, X: Exchange> Reconciler<D, X> {
    /// With its ports. An order that the exchange does not know is given up after `grace`, in milliseconds: until then it may still
    /// be on its way.
    pub fn new(transactions: D, exchange: X, grace: Timestamp) -> Self {
        Self { transactions, exchange, grace }
    }

    /// One round. What can't be asked or written now is asked in the next one, and keeps none of the others up.
    pub async fn round(&self, now: Timestamp) -> Answer<Reconciled> {
        let mut reconciled = Reconciled::default();
        let (unsettled, unfilled) = {
            let mut work = self.transactions.begin().await?;
            (work.unsettled().await?, work.unfilled().await?)
        };
        for attempt in unsettled {
            if let Err(fault) = self.settle(&attempt, now, &mut reconciled).await {
                reconciled.failed.push((attempt.identifier(), fault));
            }
        }
        for attempt in unfilled {
            match self.follow(&attempt, now).await {
                Ok(filled) => reconciled.filled += usize::from(filled),
                Err(fault) => reconciled.failed.push((attempt.identifier(), fault)),
            }
        }
        Ok(reconciled)
    }

    /// Finds out what became of an attempt that is not settled.
    async fn settle(&self, attempt: &Attempt, now: Timestamp, reconciled: &mut Reconciled) -> Answer<()> {
        let is_over = now - attempt.since >= self.grace;
        if attempt.status == Status::Requested {
            // A call is over long before: its worker died, and nobody else has taken up the command.
            if is_over {
                self.move_on(attempt, (Status::Unknown, Reason::Interrupted), now).await?;
            }
            return Ok(());
        }
        match self.exchange.find(&attempt.identifier()).await? {
            Some(placed) => reconciled.found += usize::from(self.accept(attempt, &placed, now).await?),
            None if is_over => {
                let gone = (Status::Rejected, Reason::NotFound);
                reconciled.not_found += usize::from(self.move_on(attempt, gone, now).await?);
            }
            None => {}
        }
        Ok(())
    }

    /// Books what was executed of an order since the last time; whether there was anything.
    async fn follow(&self, attempt: &Attempt, now: Timestamp) -> Answer<bool> {
        match self.exchange.find(&attempt.identifier()).await? {
            Some(placed) if placed.executed > 0 => self.fill(attempt, &placed, now).await,
            _ => Ok(false),
        }
    }

    async fn accept(&self, attempt: &Attempt, placed: &Placed, now: Timestamp) -> Answer<bool> {
        let mut work = self.transactions.begin().await?;
        let intent = work.intent(attempt.intent_id).await?.ok_or_else(|| missing(attempt))?;
        let state = (Status::Acked, Reason::Found);
        if !work.move_attempt(attempt, state, Some(&placed.order_id), now).await? {
            return Ok(false);
        }
        let accepted = OrderAccepted {
            order_intent_id: attempt.intent_id,
            attempt_no: attempt.no,
            identifier: attempt.identifier(),
            order_id: placed.order_id.clone(),
        };
        work.publish(&accepted, &intent.about).await?;
        work.commit().await?;
        Ok(true)
    }

    async fn move_on(&self, attempt: &Attempt, to: (Status, Reason), now: Timestamp) -> Answer<bool> {
        let mut work = self.transactions.begin().await?;
        let moved = work.move_attempt(attempt, to, None, now).await?;
        work.commit().await?;
        Ok(moved)
    }

    async fn fill(&self, attempt: &Attempt, placed: &Placed, now: Timestamp) -> Answer<bool> {
        let mut work = self.transactions.begin().await?;
        let intent = work.intent(attempt.intent_id).await?.ok_or_else(|| missing(attempt))?;
        let booked = work.fill(&intent, &attempt.identifier(), placed.executed, now).await?;
        let Some(volume) = booked else { return Ok(false) };
        let filled = OrderFilled {
            order_intent_id: intent.id,
            identifier: attempt.identifier(),
            side: intent.side,
            volume,
            executed: placed.executed,
            price: intent.price,
        };
        work.publish(&filled, &intent.about).await?;
        work.commit().await?;
        Ok(true)
    }
}

fn missing(attempt: &Attempt) -> Fault {
    Fault::Reject(format!("the attempt {} has no intent", attempt.identifier()))
}
