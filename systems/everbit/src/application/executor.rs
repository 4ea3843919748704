//! The executor: places the order of an attempt at most once, whatever happens to it.
//!
//! It writes REQUESTED and commits before it calls. Whoever finds REQUESTED later knows that the call may have gone out, and makes it
//! UNKNOWN. Nobody sends it again: the reconciler asks the exchange.

use uuid::Uuid;

use crate::application::{Answer, EventBus, Exchange, Fault, Step, Steps, Transactions, Work};
use crate::domain::{
    Attempt, CreateOrderAttempt, Intent, OrderAccepted, Reason, Reply, Status, StrayOrderSent, Timestamp,
};

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executed {
    /// Its attempt says it.
    Told,
    /// It was sent after its attempt had been given up: an operator must look at the exchange.
    Stray(StrayOrderSent),
}

/// Executes commands.
#[derive(Debug, Clone)]
pub struct Executor<D, X, S> {
    transactions: D,
    exchange: X,
    steps: S,
}

impl<D: Transactions, X: Exchange, S: Steps> Executor<D, X, S> {
    /// With its ports.
    pub fn new(transactions: D, exchange: X, steps: S) -> Self {
        Self { transactions, exchange, steps }
    }

    /// Executes a command. A second time it changes nothing, and calls nobody.
    pub async fn execute(
        &self,
        event_id: Uuid,
        command: &CreateOrderAttempt,
        now: Timestamp,
    ) -> Answer<Executed> {
        self.steps.reach(Step::Received).await;
        let Some(intent) = self.request(command, now).await? else { return Ok(Executed::Told) };
        self.steps.reach(Step::Requested).await;
        let reply = self.exchange.place(&command.identifier(), &intent).await;
        self.steps.reach(Step::Answered).await;
        let executed = self.settle(event_id, command, &intent, &reply, now).await?;
        self.steps.reach(Step::Settled).await;
        Ok(executed)
    }

    /// Writes that the attempt is requested, and commits. Nothing if there is nothing to send.
    async fn request(&self, command: &CreateOrderAttempt, now: Timestamp) -> Answer<Option<Intent>> {
        let mut work = self.transactions.begin().await?;
        let intent_id = command.order_intent_id;
        let Some(intent) = work.lock_intent(intent_id).await? else {
            return Err(Fault::Missing(format!("there is no intent {intent_id}")));
        };
        let attempts = work.attempts(intent_id).await?;
        if let Some(attempt) = attempts.iter().find(|attempt| attempt.no == command.attempt_no) {
            if attempt.status == Status::Requested {
                // Somebody was about to send it, and may have.
                work.move_attempt(attempt, (Status::Unknown, Reason::Interrupted), None, now).await?;
                work.commit().await?;
            }
            return Ok(None);
        }
        may_follow(command.attempt_no, attempts.first())?;
        let stopped = work.kill_switch().await?;
        let state =
            if stopped { (Status::Rejected, Reason::KillSwitch) } else { (Status::Requested, Reason::Sent) };
        let is_ours = work.open_attempt(intent_id, command.attempt_no, state, now).await?;
        work.commit().await?;
        Ok(Some(intent).filter(|_| is_ours && !stopped))
    }

    /// Writes what the exchange said, and publishes that it has the order, in one transaction.
    async fn settle(
        &self,
        event_id: Uuid,
        command: &CreateOrderAttempt,
        intent: &Intent,
        reply: &Reply,
        now: Timestamp,
    ) -> Answer<Executed> {
        let order_id = match reply {
            Reply::Placed(placed) => Some(placed.order_id.as_str()),
            _ => None,
        };
        let about = intent.about.caused_by(event_id);
        let mut work = self.transactions.begin().await?;
        // So that whoever is about to send another attempt waits, and sees what became of this one.
        work.lock_intent(intent.id).await?;
        // Who finds the attempt changed meanwhile looks again. It goes one way, so that ends.
        while let Some(attempt) = work.attempt(&command.identifier()).await? {
            let (verdict, stray) = (reply.verdict(), stray(&attempt, reply));
            let to = match &stray {
                Some(_) => (attempt.status, Reason::Stray),
                None if attempt.status.may_become(verdict.0) => verdict,
                // The reconciler was faster, and found what this worker found.
                None => break,
            };
            if !work.move_attempt(&attempt, to, order_id, now).await? {
                continue;
            }
            if let Some(stray) = stray {
                work.publish(&stray, &about).await?;
                work.commit().await?;
                return Ok(Executed::Stray(stray));
            }
            if let Some(order_id) = order_id {
                let accepted = OrderAccepted {
                    order_intent_id: intent.id,
                    attempt_no: command.attempt_no,
                    identifier: command.identifier(),
                    order_id: order_id.to_owned(),
                };
                work.publish(&accepted, &about).await?;
            }
            work.commit().await?;
            break;
        }
        Ok(Executed::Told)
    }
}

/// Whether an attempt with this number may be sent behind the last one. The command was allowed when somebody asked for it; what is written
/// now counts. It is under the lock of the intent, so that it stays true.
fn may_follow(no: i32, last: Option<&Attempt>) -> Answer<()> {
    let refused = |why: String| Err(Fault::Reject(format!("attempt {no} is not sent: {why}")));
    match last {
        None if no == 1 => Ok(()),
        None => refused("the first attempt has the number 1".to_owned()),
        Some(last) if last.is_stray => {
            refused(format!("attempt {} was sent after it was given up, and may have an order", last.no))
        }
        Some(last) if !last.is_without_order() => {
            refused(format!("attempt {} is {}, and may have an order", last.no, last.status.as_str()))
        }
        Some(last) if last.no.checked_add(1) != Some(no) => {
            refused(format!("the last attempt is {}", last.no))
        }
        Some(_) => Ok(()),
    }
}

/// What an operator must know: this worker stood still for longer than the grace, the reconciler gave the attempt up, and only then was it
/// sent. The attempt stays as it is, because another one may have followed.
fn stray(attempt: &Attempt, reply: &Reply) -> Option<StrayOrderSent> {
    let is_stray = attempt.status.is_without_order() && reply.may_be_an_order();
    is_stray.then(|| StrayOrderSent {
        order_intent_id: attempt.intent_id,
        attempt_no: attempt.no,
        identifier: attempt.identifier(),
        order_id: match reply {
            Reply::Placed(placed) => Some(placed.order_id.clone()),
            _ => None,
        },
    })
}
