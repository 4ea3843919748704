//! Another attempt: it is sent only behind one that surely left no order, whatever a command says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use everbit::adapters::bus::Kind;
use everbit::adapters::settings::Settings;
use everbit::adapters::steps::Halt;
use everbit::adapters::store::SqliteTransactions;
use everbit::application::{Exchange, Executed, Executor, Fault, Trading, Transactions, Work};
use everbit::domain::{CreateOrderAttempt, Intent, Placed, Reason, Reply, Status};
use everbit::story::counts::Database;
use everbit::stubs::exchange::Conduct;
use postrider_testkit::until;
use uuid::Uuid;

use crate::support::{World, signal};

/// An exchange that counts what it is sent. Where a worker stands still before its call, the attempt is given up, and another one asked for.
#[derive(Clone)]
struct Counting<D> {
    transactions: D,
    sent: Arc<AtomicU32>,
    reply: Reply,
    stands_still: bool,
}

impl<D: Transactions> Counting<D> {
    fn new(transactions: &D, reply: Reply, stands_still: bool) -> Self {
        Self { transactions: transactions.clone(), sent: Arc::default(), reply, stands_still }
    }

    fn executor(&self) -> Executor<D, Self, Halt> {
        Executor::new(self.transactions.clone(), self.clone(), Halt::default())
    }
}

impl<D: Transactions> Exchange for Counting<D> {
    async fn place(&self, identifier: &str, intent: &Intent) -> Reply {
        if self.sent.fetch_add(1, Ordering::SeqCst) == 0 && self.stands_still {
            let mut work = self.transactions.begin().await.expect("a transaction");
            let attempt = work.attempt(identifier).await.expect("an answer").expect("an attempt");
            let gone = (Status::Rejected, Reason::NotFound);
            assert!(work.move_attempt(&attempt, gone, None, 5).await.expect("moved"));
            work.commit().await.expect("committed");
            let trading = Trading::new(self.transactions.clone());
            assert_eq!(trading.try_again(intent.id).await.expect("it was given up"), 2);
        }
        self.reply.clone()
    }

    async fn find(&self, _identifier: &str) -> Result<Option<Placed>, Fault> {
        Ok(None)
    }

    async fn candles(&self, _market: &str) -> Result<Vec<i64>, Fault> {
        Ok(Vec::new())
    }
}

fn placed() -> Reply {
    Reply::Placed(Placed { order_id: "upbit-1".into(), executed: 0 })
}

/// Commands that nothing published, and one that was queued before the attempt in front of it turned out to be stray.
async fn only_behind_one_without_an_order<D: Transactions>(transactions: &D) {
    for (reply, no, says) in [
        (placed(), 2, "attempt 2 is not sent: attempt 1 is ACKED"),
        (Reply::Unclear, 2, "attempt 2 is not sent: attempt 1 is UNKNOWN"),
        (Reply::Refused, 3, "attempt 3 is not sent: the last attempt is 1"),
        (Reply::Refused, 0, "attempt 0 is not sent: the last attempt is 1"),
    ] {
        let exchange = Counting::new(transactions, reply, false);
        let executor = exchange.executor();
        let order_intent_id = Trading::new(transactions.clone()).take(&signal(), 1).await.expect("taken");
        let execute = async |attempt_no| {
            let command = CreateOrderAttempt { order_intent_id, attempt_no };
            executor.execute(Uuid::new_v4(), &command, 2).await
        };
        let early = execute(2).await.expect_err("there is no attempt 1 yet");
        assert!(early.to_string().contains("the first attempt has the number 1"), "{early}");
        execute(1).await.expect("executed");
        let refused = execute(no).await.expect_err(says);
        assert!(matches!(&refused, Fault::Reject(why) if why.contains(says)), "{refused}");
        assert_eq!(exchange.sent.load(Ordering::SeqCst), 1, "{says}");
    }
    let exchange = Counting::new(transactions, placed(), true);
    let order_intent_id = Trading::new(transactions.clone()).take(&signal(), 1).await.expect("taken");
    let [first, second] = [1, 2].map(|attempt_no| CreateOrderAttempt { order_intent_id, attempt_no });
    let executed = exchange.executor().execute(Uuid::new_v4(), &first, 2).await.expect("executed");
    assert!(matches!(executed, Executed::Stray(_)), "{executed:?}");
    let refused = exchange.executor().execute(Uuid::new_v4(), &second, 9).await.expect_err("it is queued");
    assert!(refused.to_string().contains("attempt 1 was sent after it was given up"), "{refused}");
    assert_eq!(exchange.sent.load(Ordering::SeqCst), 1, "one order");
}

/// E11: a command with another number, which somebody recorded by hand or which was queued before the attempt in front of it turned out to be
/// stray, is not sent: an intent has one order, whatever the commands say. On PostgreSQL and on SQLite.
#[tokio::test]
async fn a_command_is_not_sent_while_an_earlier_attempt_may_have_an_order() {
    let world = World::new().await;
    only_behind_one_without_an_order(&world.transactions).await;

    let database = Database::new(true).await;
    let Database::Sqlite(_, pool) = &database else { panic!("it is SQLite") };
    SqliteTransactions::migrate(pool).await.expect("tables");
    let settings = Settings::of(&database.url(), Kind::Outbox);
    only_behind_one_without_an_order(&SqliteTransactions::open(pool, &settings).await.expect("open")).await;
}

/// E11: such a command that is in the queue is dead, with the reason.
#[tokio::test]
async fn a_second_command_that_somebody_recorded_by_hand_is_dead() {
    let world = World::new().await;
    let first = world.intent(Conduct::Place).await;
    world.execute(&first, 2_000).await;
    let by_hand = world.publish(&CreateOrderAttempt { attempt_no: 2, ..first }).await;
    let workers = world.workers().await;
    until("it is dead", async || world.row(by_hand).await.status == "DEAD").await;
    workers.stop().await.expect("stopped");
    let said = "select count(*) from outbox_event where last_error_message like '%attempt 2 is not sent: attempt 1 is ACKED%'";
    assert_eq!((world.number(said).await, world.requests().await), (1, 1));
}

/// E11: whoever is about to send another attempt waits for whoever is writing down that the one before it is stray.
#[tokio::test]
async fn a_later_attempt_waits_until_the_answer_to_the_earlier_one_is_written() {
    let world = World::new().await;
    let first = world.intent(Conduct::Refuse).await;
    world.execute(&first, 2_000).await;
    let second = CreateOrderAttempt { attempt_no: 2, ..first.clone() };
    let mut settling = world.transactions.begin().await.expect("a transaction");
    settling.lock_intent(first.order_intent_id).await.expect("an answer").expect("an intent");
    let attempt = settling.attempt(&first.identifier()).await.expect("an answer").expect("an attempt");
    let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let executor = world.services().executor;
    let (executed, ()) = tokio::join!(executor.execute(Uuid::new_v4(), &second, 3_000), async {
        until("it waits", async || world.number(waits).await == 1).await;
        let stray = (Status::Rejected, Reason::Stray);
        assert!(settling.move_attempt(&attempt, stray, None, 3_000).await.expect("moved"));
        settling.commit().await.expect("committed");
    });
    let refused = executed.expect_err("it is stray");
    assert!(refused.to_string().contains("attempt 1 was sent after it was given up"), "{refused}");
    assert_eq!(world.requests().await, 1, "of the first attempt");
}
