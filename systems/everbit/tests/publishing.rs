//! What is published, and how it can be read.

mod support;

use std::collections::BTreeMap;

use everbit::adapters::envelope::render;
use everbit::adapters::events::new_event;
use everbit::adapters::workers::relay;
use everbit::application::{EventBus, Fault, Operations, Trading, Transactions, Work};
use everbit::domain::streams::{ALL, WORKERS};
use everbit::domain::{About, BacktestFinished, Message, OrderAccepted, messages};
use everbit::story::ticker::TickerReceived;
use postrider::catalog::Convention;
use postrider::store::OutboxSource;
use postrider::{OffsetDateTime, Recorded};
use postrider_testkit::{Program, until};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use story::Stub;
use support::{TRACE, World, about, signal};
use uuid::Uuid;

/// 2026-02-17, midnight UTC.
const THAT_DAY: i64 = 1_771_286_400;

impl World {
    /// Records a message of that day, and reads it back.
    async fn recorded<M: Message>(&self, message: &M, about: &About) -> Recorded {
        let mut event = new_event(message, about).expect("an event");
        event.occurred_at = Some(OffsetDateTime::from_unix_timestamp(THAT_DAY).expect("a time"));
        let id = self.transactions.outbox.record_outside_transaction(&event).await.expect("recorded");
        let all = self.transactions.outbox.recorded(0, 100).await.expect("events");
        all.into_iter().find(|event| event.event_id == id).expect("the event")
    }
}

/// E16, E1: five streams, and four workers by name, each with a stream of its own.
#[tokio::test]
async fn five_streams_have_four_workers() {
    let world = World::new().await;
    let wanted = [
        "everbit.trade.command",
        "everbit.trade.event",
        "everbit.backtest.command",
        "everbit.backtest.event",
        "everbit.system.event",
    ];
    assert_eq!(ALL, wanted);
    let infos = relay(&world.transactions.outbox, &world.services(), &world.settings).subscriber_infos();
    let found: Vec<_> =
        infos.iter().map(|info| (info.name.as_str(), info.streams.join(" "), info.handlers.len())).collect();
    let wanted = [
        ("order-executor-worker", "everbit.trade.command".to_owned(), 1),
        ("notification-worker", "everbit.trade.event".to_owned(), 2),
        ("backtest-worker", "everbit.backtest.command".to_owned(), 1),
        ("system-worker", "everbit.system.event".to_owned(), 2),
    ];
    assert_eq!(found, wanted);
    let mut settings = world.settings.clone();
    settings.workers = vec!["backtest-worker".into()];
    let one = relay(&world.transactions.outbox, &world.services(), &settings).subscriber_infos();
    assert_eq!(one.len(), 1, "a process may have one of them alone");
    settings.workers = vec!["ticker-worker".into()];
    assert!(settings.check().expect_err("unknown").contains("ticker-worker is unknown"));
    for name in messages::ALL {
        let convention = if name.starts_with("Create") || name.starts_with("Run") {
            Convention::Commands
        } else {
            Convention::PascalPastTense
        };
        assert!(convention.check(name).is_ok(), "{name}");
    }
}

/// E1: what is published in a stream is handled by its worker alone, and everything is handled.
#[tokio::test]
async fn each_stream_is_worked_off_by_its_own_worker() {
    let world = World::new().await;
    let services = world.services();
    Trading::new(world.transactions.clone()).take(&signal(), 1).await.expect("taken");
    services.backtests.ask(&about(), 1).await.expect("asked");
    Operations::new(world.transactions.clone()).turn_kill_switch(false, &about(), 1).await.expect("turned");
    let workers = world.workers().await;
    let open =
        "select count(*) from outbox_event where status <> 'DONE' and stream <> 'everbit.backtest.event'";
    let events = "select count(*) from outbox_event";
    until("all is done", async || {
        world.database.count(events).await == 5 && world.database.count(open).await == 0
    })
    .await;
    workers.stop().await.expect("stopped");
    let sql =
        "select subscription || ' ' || stream, count(*) from postrider.event_state group by 1 order by 1";
    let found: BTreeMap<String, i64> = world.database.table(sql).await.into_iter().collect();
    let wanted = WORKERS.map(|(worker, stream)| (format!("{worker} {stream}"), 1));
    assert_eq!(found, wanted.into());
    let counts = "select (select count(*) from order_attempt where status = 'ACKED')
                  + (select count(*) from backtest_job where status = 'FINISHED') * 10
                  + (select count(*) from operation_log) * 100 + (select count(*) from notification_log) * 1000";
    assert_eq!(world.database.count(counts).await, 1111);
}

/// X1, E2: the document's table as a view, with its columns in its order; every event has one row, before and after its worker.
#[tokio::test]
async fn the_table_of_the_document_is_a_view() {
    let world = World::new().await;
    let columns = "select column_name from information_schema.columns where table_name = 'outbox_event' order by ordinal_position";
    let columns: Vec<String> = sqlx::query_scalar(columns).fetch_all(world.pool()).await.expect("columns");
    let wanted = "id event_id stream event_type aggregate_type aggregate_id payload_json status attempt_count max_attempts \
                  next_retry_at last_attempt_at locked_by locked_until last_error_code last_error_message created_at \
                  updated_at processed_at";
    assert_eq!(columns.join(" "), wanted);
    let intent = Trading::new(world.transactions.clone()).take(&signal(), 1).await.expect("taken");
    let row = async || -> Value {
        let sql = "select to_json(o)::text from outbox_event o where event_type = 'CreateOrderAttempt'";
        let text: String = sqlx::query_scalar(sql).fetch_one(world.pool()).await.expect("one row");
        serde_json::from_str(&text).expect("JSON")
    };
    let before = row().await;
    assert_eq!(
        (&before["status"], &before["attempt_count"], &before["max_attempts"]),
        (&json!("PENDING"), &json!(0), &json!(10))
    );
    assert_eq!(before["next_retry_at"], before["created_at"], "due at once");
    assert_eq!(
        (&before["stream"], &before["aggregate_type"]),
        (&json!("everbit.trade.command"), &json!("OrderIntent"))
    );
    assert_eq!(before["aggregate_id"], json!(intent));
    assert_eq!(before["payload_json"], json!({ "orderIntentId": intent, "attemptNo": 1 }));
    let workers = world.workers().await;
    until("it is done", async || row().await["status"] == "DONE").await;
    workers.stop().await.expect("stopped");
    let after = row().await;
    assert_eq!(
        (&after["attempt_count"], &after["locked_by"], &after["last_error_code"]),
        (&json!(1), &Value::Null, &Value::Null)
    );
    assert!(after["processed_at"].is_string() && after["last_attempt_at"].is_string(), "{after}");
    let again = format!(
        "insert into postrider.event (event_id, event_type, aggregate_type, aggregate_id) values ({}, 'X', 'Y', '1')",
        after["event_id"].to_string().replace('"', "'")
    );
    let refusal =
        sqlx::query(sqlx::AssertSqlSafe(again)).execute(world.pool()).await.expect_err("it is unique");
    assert!(refusal.to_string().contains("event_id_is_unique"), "{refusal}");
}

/// E9, E17: the envelope of the document, byte for byte; a trace may be of the W3C or a UUID.
#[tokio::test]
async fn an_event_has_the_envelope_of_the_document() {
    let world = World::new().await;
    let intent = Uuid::new_v4();
    let accepted = OrderAccepted {
        order_intent_id: intent,
        attempt_no: 1,
        identifier: "i-1".into(),
        order_id: "upbit-1".into(),
    };
    let event = world.recorded(&accepted, &about()).await;
    let wanted = format!(
        r#"{{"schemaVersion":1,"eventId":"{}","type":"OrderAccepted","occurredAt":"2026-02-17T00:00:00.000Z","traceId":"0af7651916cd43dd8448eb211c80319c","ownerId":"OWNER","strategyKey":"EXTREME_FLIP","market":"KRW-BTC","payload":{{"orderIntentId":"{intent}","attemptNo":1,"identifier":"i-1","orderId":"upbit-1"}}}}"#,
        event.event_id
    );
    assert_eq!(render(&event).expect("JSON"), wanted);
    let trace = Uuid::new_v4().to_string();
    let event = world.recorded(&accepted, &About { trace: trace.clone(), ..about() }).await;
    let envelope: Value = serde_json::from_str(&render(&event).expect("JSON")).expect("JSON");
    assert_eq!(envelope["traceId"], json!(trace));
}

/// E9: what follows from a message is in its trace, is about the same, and names its cause.
#[tokio::test]
async fn what_follows_from_a_command_is_in_its_trace() {
    let world = World::new().await;
    Trading::new(world.transactions.clone()).take(&signal(), 1).await.expect("taken");
    let workers = world.workers().await;
    until("it is accepted", async || {
        world.database.count("select count(*) from outbox_event where event_type = 'OrderAccepted'").await
            == 1
    })
    .await;
    workers.stop().await.expect("stopped");
    let events = world.transactions.outbox.recorded(0, 10).await.expect("events");
    let [command, accepted] = &events[..] else { panic!("{} events", events.len()) };
    assert_eq!(accepted.headers.causation_id(), Some(command.event_id));
    for event in [command, accepted] {
        assert_eq!(event.headers.traceparent(), Some(TRACE));
        assert_eq!(event.headers.schema_version(), 1);
        let own = ["owner", "strategy", "market"].map(|name| event.headers.get(name).unwrap_or_default());
        assert_eq!(own, ["OWNER", "EXTREME_FLIP", "KRW-BTC"]);
    }
}

/// E17, E16: the program with everbit.toml sends the same envelope to the reader of backtest results.
#[tokio::test]
async fn a_sink_writes_the_same_envelope() {
    let world = World::new().await;
    let finished = BacktestFinished { job_id: Uuid::new_v4(), candles: 3, profit: 20 };
    let event = world.recorded(&finished, &about()).await;
    let reader = Stub::start().await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/everbit.toml");
    let mut command = story::process::postrider();
    command.args(["relay", "--config", file, "--set", "http.listen=off"]);
    command.env("DATABASE_URL", world.database.url()).env("RESULTS_URL", reader.url());
    let relay = Program::start("postrider relay", &mut command);
    until("the reader has it", async || !reader.requests().is_empty()).await;
    let wanted: Value = serde_json::from_str(&render(&event).expect("JSON")).expect("JSON");
    assert_eq!(reader.requests()[0].body, wanted);
    assert_eq!(wanted["payload"]["profit"], json!(20));
    until("it is done", async || world.row(event.event_id).await.status == "DONE").await;
    assert_eq!(relay.stop().await, Some(0));
}

/// Market data in a stream that exists.
#[derive(Debug, Serialize, Deserialize)]
struct OrderbookReceived;

impl Message for OrderbookReceived {
    const NAME: &'static str = "OrderbookReceived";
    const STREAM: &'static str = everbit::domain::streams::TRADE_EVENT;
    const AGGREGATE: &'static str = "Market";

    fn aggregate_id(&self) -> String {
        "KRW-BTC".to_owned()
    }
}

/// X1: one payload that jsonb can't hold does not keep the others from being read.
#[tokio::test]
async fn a_payload_that_jsonb_cannot_hold_is_null_in_the_table() {
    let world = World::new().await;
    Trading::new(world.transactions.clone()).take(&signal(), 1).await.expect("taken");
    let sql = r#"select postrider.record('everbit.system.event', 'KillSwitchChanged', 'Setting', 'x', '{"a": 1e200000}'::json)"#;
    world.database.execute(sql).await;
    let sql = "select payload_json is null from outbox_event order by id";
    let found: Vec<bool> = sqlx::query_scalar(sql).fetch_all(world.pool()).await.expect("the whole table");
    assert_eq!(found, [false, true]);
}

/// E18: the publisher refuses market data, by its stream and by its type; the transaction goes on.
#[tokio::test]
async fn market_data_is_refused() {
    let world = World::new().await;
    let mut work = world.transactions.begin().await.expect("a transaction");
    let ticker = work.publish(&TickerReceived { price: 1 }, &about()).await.expect_err("no such stream");
    let orderbook = work.publish(&OrderbookReceived, &about()).await.expect_err("no such type");
    for (fault, name) in [(ticker, "everbit.market.ticker"), (orderbook, "OrderbookReceived")] {
        assert!(matches!(fault, Fault::Invalid(_)), "{fault:?}");
        assert!(
            fault.to_string().contains(&format!("{name:?} is not allowed for this publisher")),
            "{fault}"
        );
    }
    work.commit().await.expect("committed");
    assert_eq!(world.database.count("select count(*) from outbox_event").await, 0);
    let event = new_event(&TickerReceived { price: 1 }, &about()).expect("an event");
    assert!(everbit::adapters::bus::allowed().check(&event).is_err(), "nor by Kafka");
}
