//! Trading: a signal becomes an intent and the command to place its order, in one transaction.

use uuid::Uuid;

use crate::application::{Answer, EventBus, Fault, Transactions, Work};
use crate::domain::{CreateOrderAttempt, Signal, Timestamp};

/// The highest price, in KRW.
pub const HIGHEST_PRICE: i64 = 1_000_000_000_000;
/// The largest volume, in units of 1e-8: ten million coins. A position holds thousands of such orders before it is full.
pub const LARGEST_VOLUME: i64 = 1_000_000_000_000_000;

/// The commands of strategies and people.
#[derive(Debug, Clone)]
pub struct Trading<D> {
    transactions: D,
}

impl<D: Transactions> Trading<D> {
    /// With its port.
    pub fn new(transactions: D) -> Self {
        Self { transactions }
    }

    /// Takes a signal: writes it, its intent and the command for the first attempt. A signal that is known changes nothing; one that says
    /// something else than it did is refused.
    pub async fn take(&self, signal: &Signal, now: Timestamp) -> Answer<Uuid> {
        if !(1..=HIGHEST_PRICE).contains(&signal.price) || !(1..=LARGEST_VOLUME).contains(&signal.volume) {
            return Err(Fault::Invalid(format!(
                "the price must be from 1 to {HIGHEST_PRICE}, and the volume from 1 to {LARGEST_VOLUME}"
            )));
        }
        let order_intent_id = signal.intent_id();
        let mut work = self.transactions.begin().await?;
        if work.open_intent(signal, now).await? {
            let command = CreateOrderAttempt { order_intent_id, attempt_no: 1 };
            work.publish(&command, &signal.about).await?;
            work.commit().await?;
            return Ok(order_intent_id);
        }
        match work.intent(order_intent_id).await? {
            Some(known) if signal.is_of(&known) => Ok(order_intent_id),
            _ => Err(Fault::Reject(format!(
                "the signal {} is known with another content; a new signal must have a new id",
                signal.id
            ))),
        }
    }

    /// Asks for another attempt, after one that surely left no order at the exchange. Any other is refused.
    pub async fn try_again(&self, intent_id: Uuid) -> Answer<i32> {
        let mut work = self.transactions.begin().await?;
        let Some(intent) = work.intent(intent_id).await? else {
            return Err(Fault::Reject(format!("there is no intent {intent_id}")));
        };
        let attempts = work.attempts(intent_id).await?;
        let last = attempts.first().filter(|attempt| attempt.is_without_order());
        let Some(last) = last else {
            if let Some(stray) = attempts.first().filter(|attempt| attempt.is_stray) {
                let identifier = stray.identifier();
                return Err(Fault::Reject(format!(
                    "the last attempt was sent after it was given up: an operator must look for {identifier} at the exchange"
                )));
            }
            let state = attempts.first().map_or("queued", |attempt| attempt.status.as_str());
            return Err(Fault::Reject(format!(
                "the last attempt is {state}: another one is allowed only after REJECTED or THROTTLED"
            )));
        };
        let attempt_no = last.no + 1;
        let command = CreateOrderAttempt { order_intent_id: intent_id, attempt_no };
        work.publish(&command, &intent.about).await?;
        work.commit().await?;
        Ok(attempt_no)
    }
}
