//! A worker that is killed in the middle of orders, at a chosen moment.

use std::collections::BTreeMap;

use serde_json::json;
use story::testkit::until;
use uuid::Uuid;

use crate::domain::identifier;
use crate::story::cast::Cast;
use crate::stubs::exchange::Conduct;

/// When a worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Never.
    Never,
    /// The command is there, and nothing is written.
    Received,
    /// REQUESTED is written, and nothing is sent.
    Requested,
    /// The exchange has the request, and has not answered.
    Sent,
    /// The exchange has answered, and the answer is not written.
    Answered,
    /// The answer is written, and the command is not marked as done.
    Settled,
}

impl Moment {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Never, Self::Received, Self::Requested, Self::Sent, Self::Answered, Self::Settled];
}

/// One intent for each of these answers of the exchange; the worker that has them all in hand is killed by SIGKILL at the moment, and
/// another one goes on. Then each intent that has no order is tried again. Returns the intents.
pub async fn round(cast: &Cast, moment: Moment, conducts: &[Conduct]) -> Vec<Uuid> {
    let mut intents = Vec::new();
    for conduct in conducts {
        intents.push(cast.signal(*conduct).await);
    }
    if moment != Moment::Never {
        let step = format!("{moment:?}");
        let is_sent = moment == Moment::Sent;
        cast.direct("/hold", &json!(is_sent)).await;
        // Where the exchange holds the answers back, the worker waits for them as long as it takes.
        let settings: &[(&str, &str)] = if is_sent {
            &[("EVERBIT_TIMEOUT_MS", "60000"), ("EVERBIT_GRACE_MS", "120000"), ("EVERBIT_LEASE_MS", "3000")]
        } else {
            // Long enough that a busy machine doesn't let it run out: what is cut off then never comes to the step.
            &[("EVERBIT_HALT_AT", &step), ("EVERBIT_LEASE_MS", "3000")]
        };
        let (mut worker, _) = cast.worker("killed", settings).await;
        if is_sent {
            until("the exchange has every request", async || {
                let book = cast.book().await;
                intents.iter().all(|intent| book.requests.contains_key(&identifier(*intent, 1)))
            })
            .await;
        } else {
            for _ in &intents {
                worker.line(&format!("halted at {step}")).await;
            }
        }
        worker.process.kill();
        cast.direct("/hold", &json!(false)).await;
    }
    let (heir, _) = cast.worker("heir", &[]).await;
    cast.see_through(&intents).await;
    heir.stop().await;
    intents
}

/// What must hold of intents: each has one order at the exchange, and no identifier was sent twice. Returns those that break it.
pub async fn broken(cast: &Cast, intents: &[Uuid]) -> BTreeMap<String, String> {
    let book = cast.book().await;
    let orders = intents.iter().map(|intent| (intent.to_string(), book.orders_of(*intent)));
    let wrong_orders = orders.filter(|(_, orders)| *orders != 1);
    let twice = book.requests.iter().filter(|(_, times)| **times != 1);
    wrong_orders
        .map(|(intent, orders)| (intent, format!("{orders} orders")))
        .chain(twice.map(|(identifier, times)| (identifier.clone(), format!("sent {times} times"))))
        .collect()
}
