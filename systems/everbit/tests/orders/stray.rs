//! Orders that are sent after their attempts were given up, because a worker stood still.

use std::sync::Arc;
use std::time::Duration;

use everbit::adapters::exchange::HttpExchange;
use everbit::adapters::steps::Halt;
use everbit::application::{Exchange, Executed, Executor, Fault, Trading};
use everbit::domain::{Intent, Placed, Reply, Status};
use everbit::stubs::exchange::Conduct;
use postrider_testkit::{LogLines, until};
use serde_json::json;
use uuid::Uuid;

use crate::support::World;

/// An exchange that a worker calls after it has stood still: the reconciler has given the attempt up before.
#[derive(Clone)]
struct Stalled(Arc<World>);

impl Exchange for Stalled {
    async fn place(&self, identifier: &str, intent: &Intent) -> Reply {
        let reconciler = self.0.services().reconciler;
        for now in [100_000, 200_000] {
            reconciler.round(now).await.expect("a round");
        }
        let exchange = HttpExchange::new(&self.0.settings.exchange, self.0.settings.timeout);
        exchange.place(identifier, intent).await
    }

    async fn find(&self, _identifier: &str) -> Result<Option<Placed>, Fault> {
        Ok(None)
    }

    async fn candles(&self, _market: &str) -> Result<Vec<i64>, Fault> {
        Ok(Vec::new())
    }
}

/// E11: an order that is sent after its attempt was given up is no secret: the attempt says so, there is an event, and no other attempt
/// follows. One that the exchange did not take is what it was given up as.
#[tokio::test]
async fn an_order_that_is_sent_after_it_was_given_up_is_stray() {
    let world = Arc::new(World::new().await);
    let executor = Executor::new(world.transactions.clone(), Stalled(world.clone()), Halt::default());
    let trading = Trading::new(world.transactions.clone());
    let sql = "select reason || ' ' || (order_id is not null)::text from order_attempt where identifier = $1";
    for (conduct, said) in
        [(Conduct::Place, "STRAY true"), (Conduct::Fail, "STRAY false"), (Conduct::Refuse, "NOT_FOUND false")]
    {
        let command = world.intent(conduct).await;
        let executed = executor.execute(Uuid::new_v4(), &command, 9).await.expect("executed");
        let is_stray = said.starts_with("STRAY");
        assert_eq!(matches!(executed, Executed::Stray(_)), is_stray, "{conduct:?}");
        assert_eq!(world.status(&command).await, Some(Status::Rejected), "{conduct:?}");
        let found = sqlx::query_scalar::<_, String>(sql).bind(command.identifier());
        assert_eq!(found.fetch_one(world.pool()).await.expect("an attempt"), said, "{conduct:?}");
        let again = trading.try_again(command.order_intent_id).await;
        assert_eq!(again.is_err(), is_stray, "{again:?}");
        if let Err(refusal) = again {
            assert!(refusal.to_string().contains("an operator must look"), "{refusal}");
        }
    }
    let events = "select count(*) from outbox_event where event_type = 'StrayOrderSent'";
    assert_eq!(world.number(events).await, 2);
    let accepted = "select count(*) from outbox_event where event_type = 'OrderAccepted'";
    assert_eq!(world.number(accepted).await, 0, "nobody is told that all is well");
}

/// E11: operators see a stray order: in the log of the worker that sent it, and in the log of operations.
#[tokio::test]
async fn operators_are_told_of_a_stray_order() {
    let lines = LogLines::capture();
    let mut world = World::new().await;
    world.settings.timeout = Duration::from_secs(20);
    world.direct("/hold", json!(true)).await;
    let command = world.intent(Conduct::Place).await;
    let workers = world.workers().await;
    until("the exchange is called", async || world.requests().await == 1).await;
    // As if this worker had stood still before the call, for longer than the grace.
    world.database.execute("update order_attempt set status = 'REJECTED', reason = 'NOT_FOUND'").await;
    world.direct("/hold", json!(false)).await;
    let noted = "select count(*) from operation_log where text like 'stray order %'";
    until("operators are told", async || world.number(noted).await == 1).await;
    workers.stop().await.expect("stopped");
    let identifier = command.identifier();
    let told = lines.with(&["ERROR", "an order was sent after it was given up", &identifier]);
    assert_eq!(told.len(), 1, "{told:?}");
    let text = format!("select count(*) from operation_log where text like '%{identifier}%'");
    assert_eq!(world.number(&text).await, 1);
}
