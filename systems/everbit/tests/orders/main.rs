//! Orders: one per intent, by the state machine of the attempt.

mod asking;
mod bookings;
mod later;
mod stray;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;

use everbit::adapters::api::{Api, router};
use everbit::adapters::exchange::HttpExchange;
use everbit::adapters::steps::Halt;
use everbit::application::notices::Notice;
use everbit::application::{Backtests, Exchange, Executor, Fault, Trading, Transactions, Work};
use everbit::domain::{CreateOrderAttempt, Intent, Placed, Reply, Status};
use everbit::stubs::exchange::Conduct;
use postrider_testkit::until;
use serde_json::json;
use support::{World, about, serve, signal};
use uuid::Uuid;

impl World {
    /// An intent, and the command for its first attempt, which the exchange treats so.
    async fn intent(&self, conduct: Conduct) -> CreateOrderAttempt {
        let id = Trading::new(self.transactions.clone()).take(&signal(), 1_000).await.expect("taken");
        let command = CreateOrderAttempt { order_intent_id: id, attempt_no: 1 };
        self.direct(&format!("/conduct/{}", command.identifier()), json!(conduct)).await;
        command
    }

    async fn number(&self, sql: &str) -> i64 {
        self.database.count(sql).await
    }
}

/// E11: signal, intent and command are one transaction: a fault before the commit leaves nothing of it.
#[tokio::test]
async fn a_signal_its_intent_and_its_command_are_one_transaction() {
    let world = World::new().await;
    let rows = "select (select count(*) from signal) + (select count(*) from order_intent) * 10
                + (select count(*) from outbox_event where event_type = 'CreateOrderAttempt') * 100";
    // The event is refused: what was written before it must go with it.
    world.database.execute("alter table postrider.event add constraint no_events check (false)").await;
    Trading::new(world.transactions.clone()).take(&signal(), 1).await.expect_err("no event");
    assert_eq!(world.number(rows).await, 0, "nothing of it");
    world.database.execute("alter table postrider.event drop constraint no_events").await;
    let (trading, signal) = (Trading::new(world.transactions.clone()), signal());
    for _ in 0..2 {
        trading.take(&signal, 1).await.expect("taken");
    }
    assert_eq!(world.number(rows).await, 111, "one of each, although the signal came twice");
}

/// E11: the acknowledgement and its event are one transaction; what the exchange said is not lost by a fault, and nothing is sent again.
#[tokio::test]
async fn an_acknowledgement_and_its_event_are_one_transaction() {
    let world = World::new().await;
    let command = world.intent(Conduct::Place).await;
    let accepted = "select count(*) from outbox_event where event_type = 'OrderAccepted'";
    world
        .database
        .execute("alter table postrider.event add constraint no_events check (false) not valid")
        .await;
    let executor = world.services().executor;
    executor.execute(Uuid::new_v4(), &command, 2_000).await.expect_err("no event");
    assert_eq!(world.status(&command).await, Some(Status::Requested), "not acknowledged without its event");
    assert_eq!(world.number(accepted).await, 0);
    world.database.execute("alter table postrider.event drop constraint no_events").await;
    world.execute(&command, 3_000).await;
    assert_eq!(world.status(&command).await, Some(Status::Unknown), "somebody may have sent it");
    let round = world.services().reconciler.round(4_000).await.expect("a round");
    assert_eq!((round.found, round.not_found), (1, 0));
    assert_eq!((world.status(&command).await, world.number(accepted).await), (Some(Status::Acked), 1));
    assert_eq!(world.requests().await, 1);
}

/// E11: a command that comes twice is a no-op in every state that an attempt can end in.
#[tokio::test]
async fn a_command_that_comes_twice_calls_nobody() {
    let world = World::new().await;
    for (conduct, status) in [
        (Conduct::Place, Status::Acked),
        (Conduct::Refuse, Status::Rejected),
        (Conduct::Throttle, Status::Throttled),
        (Conduct::Fail, Status::Unknown),
        (Conduct::Silent, Status::Unknown),
        (Conduct::Late, Status::Unknown),
        (Conduct::Duplicate, Status::Unknown),
    ] {
        let command = world.intent(conduct).await;
        let before = world.requests().await;
        for _ in 0..3 {
            world.execute(&command, 2_000).await;
            assert_eq!(world.status(&command).await, Some(status), "{conduct:?}");
        }
        assert_eq!(world.requests().await, before + 1, "{conduct:?}");
    }
}

/// E11: the two unique constraints of the document.
#[tokio::test]
async fn an_attempt_is_unique_by_its_number_and_by_its_identifier() {
    let world = World::new().await;
    let command = world.intent(Conduct::Place).await;
    world.execute(&command, 2_000).await;
    let insert = |no: i32, identifier: String| {
        let sql = "insert into order_attempt values ($1, $2, $3, 'REQUESTED', 'SENT', null, 1, 1)";
        sqlx::query(sql).bind(command.order_intent_id).bind(no).bind(identifier).execute(world.pool())
    };
    let number = insert(1, "another".into()).await.expect_err("the number is taken").to_string();
    assert!(number.contains("order_attempt_order_intent_id_attempt_no_key"), "{number}");
    let identifier = insert(2, command.identifier()).await.expect_err("the identifier is taken").to_string();
    assert!(identifier.contains("order_attempt_identifier_key"), "{identifier}");
}

/// E11: what is unknown is asked for, given up only after the grace, and never sent by the reconciler.
#[tokio::test]
async fn an_unknown_order_is_reconciled_and_never_sent_again() {
    let world = World::new().await;
    let reconciler = world.services().reconciler;
    let (late, failed) = (world.intent(Conduct::Late).await, world.intent(Conduct::Fail).await);
    for command in [&late, &failed] {
        world.execute(command, 10_000).await;
        assert_eq!(world.status(command).await, Some(Status::Unknown));
    }
    let trading = Trading::new(world.transactions.clone());
    let refusal = trading.try_again(failed.order_intent_id).await.expect_err("it is unknown").to_string();
    assert!(refusal.contains("UNKNOWN"), "{refusal}");
    let requests = world.requests().await;
    let round = reconciler.round(69_999).await.expect("a round");
    assert_eq!((round.found, round.not_found), (1, 0), "a minute is not over");
    assert_eq!(world.status(&late).await, Some(Status::Acked));
    let round = reconciler.round(70_000).await.expect("a round");
    assert_eq!((round.found, round.not_found), (0, 1), "after the grace of a minute");
    assert_eq!(world.status(&failed).await, Some(Status::Rejected));
    assert_eq!(world.requests().await, requests, "it asked, and sent nothing");
    assert_eq!(trading.try_again(failed.order_intent_id).await.expect("allowed now"), 2);
    trading.try_again(late.order_intent_id).await.expect_err("the exchange has it");
}

/// E11: a request whose command nobody takes up again, because it is dead, is found out all the same.
#[tokio::test]
async fn a_request_that_nobody_finishes_is_reconciled() {
    let world = World::new().await;
    let command = world.intent(Conduct::Place).await;
    world.execute(&command, 10_000).await;
    // As it was before the answer was written: the exchange has the order, and the worker died.
    world.database.execute("update order_attempt set status = 'REQUESTED', order_id = null").await;
    let reconciler = world.services().reconciler;
    reconciler.round(69_999).await.expect("a round");
    assert_eq!(world.status(&command).await, Some(Status::Requested), "a call may take that long");
    reconciler.round(70_000).await.expect("a round");
    assert_eq!(world.status(&command).await, Some(Status::Unknown));
    assert_eq!(reconciler.round(70_001).await.expect("a round").found, 1);
    assert_eq!((world.status(&command).await, world.requests().await), (Some(Status::Acked), 1));
}

/// E11: a fill is an event and a change of the position, once.
#[tokio::test]
async fn a_fill_is_counted_once_and_moves_the_position() {
    let world = World::new().await;
    let command = world.intent(Conduct::Place).await;
    world.execute(&command, 2_000).await;
    let reconciler = world.services().reconciler;
    for filled in [1, 0] {
        assert_eq!(reconciler.round(3_000).await.expect("a round").filled, filled);
    }
    assert_eq!(world.number("select volume from position where market = 'KRW-BTC'").await, 1_000_000);
    let filled = "select count(*) from outbox_event where event_type = 'OrderFilled'";
    assert_eq!(world.number(filled).await, 1);
}

/// E11: an order that is executed in parts is followed until all of it is: each part is booked once and has an event, whoever looks.
#[tokio::test]
async fn an_order_that_is_filled_in_parts_is_followed_to_its_end() {
    let world = World::new().await;
    let command = world.intent(Conduct::Place).await;
    let executed = async |volume: i64| {
        world.direct(&format!("/executed/{}", command.identifier()), json!(volume)).await;
    };
    executed(0).await;
    world.execute(&command, 2_000).await;
    let (one, other) = (world.services().reconciler, world.services().reconciler);
    let position = "select coalesce(sum(volume), 0)::bigint from position where market = 'KRW-BTC'";
    for (volume, fills) in [(0, 0), (250_000, 1), (250_000, 0), (400_000, 1), (1_000_000, 1), (1_000_000, 0)]
    {
        executed(volume).await;
        let (one, other) = tokio::join!(one.round(3_000), other.round(3_000));
        assert_eq!(one.expect("a round").filled + other.expect("a round").filled, fills, "{volume}");
        assert_eq!(world.number(position).await, volume);
    }
    let sql = "select (payload_json ->> 'volume')::bigint, (payload_json ->> 'executed')::bigint
               from outbox_event where event_type = 'OrderFilled' order by id";
    let filled: Vec<(i64, i64)> = sqlx::query_as(sql).fetch_all(world.pool()).await.expect("events");
    assert_eq!(filled, [(250_000, 250_000), (150_000, 400_000), (600_000, 1_000_000)]);
    let mut work = world.transactions.begin().await.expect("a transaction");
    assert!(work.unfilled().await.expect("an answer").is_empty(), "nobody asks any more");
}

/// E11: who books a part that somebody else has booked meanwhile gives way: nothing is booked twice.
#[tokio::test]
async fn a_part_is_booked_by_one_of_two_who_saw_different_parts() {
    let world = World::new().await;
    let command = world.intent(Conduct::Place).await;
    world.execute(&command, 2_000).await;
    let (mut slow, mut fast) =
        (world.transactions.begin().await.expect("begun"), world.transactions.begin().await.expect("begun"));
    let intent = slow.intent(command.order_intent_id).await.expect("an answer").expect("an intent");
    let identifier = command.identifier();
    assert_eq!(slow.fill(&intent, &identifier, 400_000, 3).await.expect("booked"), Some(400_000));
    // It sees nothing of what is not committed, and waits for it at the key.
    let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let (second, ()) = tokio::join!(fast.fill(&intent, &identifier, 700_000, 3), async {
        until("it waits", async || world.number(waits).await == 1).await;
        slow.commit().await.expect("committed");
    });
    assert_eq!(second.expect("an answer"), None);
    fast.commit().await.expect("committed");
    assert_eq!(world.services().reconciler.round(4_000).await.expect("a round").filled, 1, "the rest of it");
    assert_eq!(world.number("select volume from position where market = 'KRW-BTC'").await, 1_000_000);
}

/// E11: queued commands end as rejected while the kill switch is on.
#[tokio::test]
async fn the_kill_switch_stops_orders_that_are_queued() {
    let world = World::new().await;
    let services = world.services();
    let command = world.intent(Conduct::Place).await;
    services.operations.turn_kill_switch(true, &about(), 1).await.expect("turned");
    world.execute(&command, 2_000).await;
    assert_eq!(world.status(&command).await, Some(Status::Rejected));
    assert_eq!(world.requests().await, 0);
    services.operations.turn_kill_switch(false, &about(), 3).await.expect("turned");
    world.execute(&command, 2_000).await;
    assert_eq!((world.status(&command).await, world.requests().await), (Some(Status::Rejected), 0));
    let again = CreateOrderAttempt { attempt_no: 2, ..command };
    world.execute(&again, 4_000).await;
    assert_eq!(world.status(&again).await, Some(Status::Acked));
}

/// E12: a notice is sent once per event, also when the push service is away: it is best effort.
#[tokio::test]
async fn a_notice_is_sent_once() {
    let mut world = World::new().await;
    let (event, other) = (Uuid::new_v4(), Uuid::new_v4());
    let notices = world.services().notices;
    for wanted in [Notice::Sent, Notice::Known, Notice::Known] {
        assert_eq!(notices.tell(event, "accepted", 1).await.expect("told"), wanted);
    }
    let push = std::mem::replace(&mut world.settings.push, "http://127.0.0.1:1".to_owned());
    assert_eq!(world.services().notices.tell(other, "filled", 2).await.expect("told"), Notice::Lost);
    world.settings.push = push;
    assert_eq!(world.services().notices.tell(other, "filled", 3).await.expect("told"), Notice::Known);
    assert_eq!(world.pushes().await, [json!({ "text": "accepted" })]);
    let unique = sqlx::query("insert into notification_log values ($1, 'again', 1)").bind(event);
    let refusal = unique.execute(world.pool()).await.expect_err("it is unique").to_string();
    assert!(refusal.contains("notification_log_event_id_key"), "{refusal}");
}

/// An exchange that a slower worker talks to: while it answers, somebody else has made the attempt unknown.
#[derive(Clone)]
struct Overtaken(Arc<World>);

impl Exchange for Overtaken {
    async fn place(&self, identifier: &str, _intent: &Intent) -> Reply {
        let mut work = self.0.transactions.begin().await.expect("a transaction");
        let attempt = work.attempt(identifier).await.expect("an answer").expect("an attempt");
        let unknown = (Status::Unknown, everbit::domain::Reason::Interrupted);
        work.move_attempt(&attempt, unknown, None, 5).await.expect("moved");
        work.commit().await.expect("committed");
        Reply::Placed(Placed { order_id: "upbit-1".into(), executed: 0 })
    }

    async fn find(&self, _identifier: &str) -> Result<Option<Placed>, Fault> {
        Ok(None)
    }

    async fn candles(&self, _market: &str) -> Result<Vec<i64>, Fault> {
        Ok(Vec::new())
    }
}

/// E11: a worker that lost its lease while it called still knows what the exchange said, and says it once.
#[tokio::test]
async fn the_answer_of_an_overtaken_worker_settles_what_is_unknown() {
    let world = Arc::new(World::new().await);
    let command = world.intent(Conduct::Place).await;
    let executor = Executor::new(world.transactions.clone(), Overtaken(world.clone()), Halt::default());
    executor.execute(Uuid::new_v4(), &command, 9).await.expect("executed");
    assert_eq!(world.status(&command).await, Some(Status::Acked));
    world.execute(&command, 10).await;
    let accepted = "select count(*) from outbox_event where event_type = 'OrderAccepted'";
    assert_eq!((world.number(accepted).await, world.requests().await), (1, 0));
}

/// E11: a signal that comes again is the same signal, and one that says something else under its id is refused with a sentence.
#[tokio::test]
async fn a_known_signal_that_says_something_else_is_refused() {
    let world = World::new().await;
    let exchange = HttpExchange::new(&world.settings.exchange, world.settings.timeout);
    let api = Api {
        backtests: Backtests::new(world.transactions.clone(), exchange),
        transactions: world.transactions.clone(),
    };
    let url = format!("{}/signals", serve(router(api)).await);
    let first = json!({ "id": Uuid::new_v4(), "ownerId": "OWNER", "strategyKey": "EXTREME_FLIP",
        "market": "KRW-BTC", "side": "BUY", "price": 50_000_000, "volume": 1_000_000 });
    let send = async |body: &serde_json::Value| {
        let answer = story::process::client().post(&url).json(body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    };
    let taken = send(&first).await;
    assert_eq!(taken.0, 202, "{}", taken.1);
    assert_eq!(send(&first).await, taken, "the same again");
    for (field, other) in [
        ("ownerId", json!("SOMEBODY")),
        ("strategyKey", json!("OTHER")),
        ("market", json!("KRW-ETH")),
        ("side", json!("SELL")),
        ("price", json!(1)),
        ("volume", json!(2)),
    ] {
        let mut changed = first.clone();
        changed[field] = other;
        let (status, text) = send(&changed).await;
        assert_eq!(status, 409, "{field}: {text}");
        assert!(text.contains("is known with another content"), "{text}");
    }
    assert_eq!(world.number("select count(*) from order_intent").await, 1);
}
