//! The executor: places the order of an attempt at most once, whatever happens to it.
//!
//! It writes REQUESTED and commits before it calls. Whoever finds REQUESTED later knows that the call may have gone out, and makes it
//! UNKNOWN. Nobody sends it again: the reconciler asks the exchange.

use uuid::Uuid;

use crate::application::{Answer, Desk, EventBus, Exchange, Fault, Step, Steps, Work};
use crate::domain::{CreateOrderAttempt, Intent, OrderAccepted, Reason, Reply, Status, Timestamp};

/// Executes commands.
#[derive(Debug, Clone)]
pub struct Executor<D, X, S> {
    desk: D,
    exchange: X,
    steps: S,
}

impl<D: Desk, X: Exchange, S: Steps> Executor<D, X, S> {
    /// With its ports.
    pub fn new(desk: D, exchange: X, steps: S) -> Self {
        Self { desk, exchange, steps }
    }

    /// Executes a command. A second time it changes nothing, and calls nobody.
    pub async fn execute(&self, event_id: Uuid, command: &CreateOrderAttempt, now: Timestamp) -> Answer<()> {
        self.steps.reach(Step::Received).await;
        let Some(intent) = self.request(command, now).await? else { return Ok(()) };
        self.steps.reach(Step::Requested).await;
        let reply = self.exchange.place(&command.identifier(), &intent).await;
        self.steps.reach(Step::Answered).await;
        self.settle(event_id, command, &intent, &reply, now).await?;
        self.steps.reach(Step::Settled).await;
        Ok(())
    }

    /// Writes that the attempt is requested, and commits. Nothing if there is nothing to send.
    async fn request(&self, command: &CreateOrderAttempt, now: Timestamp) -> Answer<Option<Intent>> {
        let mut work = self.desk.begin().await?;
        let intent_id = command.order_intent_id;
        let Some(intent) = work.intent(intent_id).await? else {
            return Err(Fault::Missing(format!("there is no intent {intent_id}")));
        };
        if let Some(attempt) = work.attempt(&command.identifier()).await? {
            if attempt.status == Status::Requested {
                // Somebody was about to send it, and may have.
                work.move_attempt(&attempt, (Status::Unknown, Reason::Interrupted), None, now).await?;
                work.commit().await?;
            }
            return Ok(None);
        }
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
    ) -> Answer<()> {
        let mut work = self.desk.begin().await?;
        let Some(attempt) = work.attempt(&command.identifier()).await? else { return Ok(()) };
        let verdict = reply.verdict();
        // The reconciler may have been faster.
        if !attempt.status.may_become(verdict.0) {
            return Ok(());
        }
        let order_id = match reply {
            Reply::Placed(placed) => Some(placed.order_id.as_str()),
            _ => None,
        };
        if !work.move_attempt(&attempt, verdict, order_id, now).await? {
            return Ok(());
        }
        if let Some(order_id) = order_id {
            let accepted = OrderAccepted {
                order_intent_id: intent.id,
                attempt_no: command.attempt_no,
                identifier: command.identifier(),
                order_id: order_id.to_owned(),
            };
            work.publish(&accepted, &intent.about.caused_by(event_id)).await?;
        }
        work.commit().await
    }
}
