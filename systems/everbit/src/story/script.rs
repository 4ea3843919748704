//! The script of the story.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use story::testkit::{Program, address, unique, until};
use story::{Options, Story};
use uuid::Uuid;

use crate::story::cast::{Cast, VOLUME};
use crate::story::kills::{Moment, broken, round};
use crate::story::ticker;
use crate::stubs::exchange::Conduct;

/// Tells the story, and returns 1 if a promise broke.
pub async fn tell(arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("everbit: {error}");
            return ExitCode::FAILURE;
        }
    };
    let sentence =
        "signals become orders at an exchange, by a queue in the database; each order is placed once.";
    Story::begin("everbit", sentence, options).act_out(all).await
}

/// Everything, one part after the other. Returns what stays up.
async fn all(story: &mut Story) -> (Cast, Program, Program) {
    let sqlite = story.options().sqlite;
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("everbit"));
    let mut cast = Cast::raise(&program, sqlite).await;
    let store = if sqlite { "SQLite, in a file" } else { "PostgreSQL" };
    story.tell(format!("the exchange, the push service and the API are up, on {store}"));

    let mut intents = trade(story, &cast).await;
    intents.extend(kill(story, &cast).await);
    let (worker, relay, metrics) = begin_second_half(story, &cast).await;
    intents.push(stop(story, &cast).await);
    backtest(story, &cast).await;
    refuse(story, &cast).await;
    if story.options().loss {
        lose_a_fill(&cast).await;
    }
    count(story, &cast, &intents).await;
    if !sqlite {
        change_the_bus(story, &mut cast).await;
    }
    addresses(story, &cast, &metrics);
    (cast, worker, relay)
}

/// Loses what a fill did to the position, so that the story has something to find: a worker would book a fill that is missing again.
async fn lose_a_fill(cast: &Cast) {
    let one = "update position set volume = volume - (select max(volume) from fill) where market = 'KRW-BTC'";
    cast.database.execute(one).await;
}

/// A signal, its order, its fill and its notices, by two workers that share the stream.
async fn trade(story: &mut Story, cast: &Cast) -> Vec<Uuid> {
    story.part("Twenty signals, two workers");
    let lease = [("EVERBIT_LEASE_MS", "5000")];
    let (first, _) = cast.worker("worker-1", &lease).await;
    let (second, _) = cast.worker("worker-2", &lease).await;
    let mut intents = Vec::new();
    for _ in 0..20 {
        intents.push(cast.signal(Conduct::Place).await);
    }
    cast.settled(&intents).await;
    story.tell("20 signals were taken, and the exchange has their orders");
    comes_to(story, cast, "fills", "select count(*) from fill", 20).await;
    comes_to(story, cast, "notices in the log", "select count(*) from notification_log", 40).await;
    let pushes = async || cast.get(&format!("{}/push", cast.push)).await.as_array().map_or(0, Vec::len);
    story.comes_to("notices, accepted and filled", pushes, 40).await;
    story.equal("orders at the exchange", cast.book().await.orders.len(), 20);
    story.equal("position in units of 1e-8", position(cast).await, 20 * VOLUME);
    intents.push(fill_in_parts(story, cast).await);
    first.stop().await;
    second.stop().await;
    intents
}

/// A promise: a query comes to return this number.
async fn comes_to(story: &mut Story, cast: &Cast, promise: &str, sql: &str, wanted: i64) {
    story.comes_to(promise, async || cast.database.count(sql).await, wanted).await;
}

async fn position(cast: &Cast) -> i64 {
    cast.database.count("select volume from position where market = 'KRW-BTC'").await
}

/// An order that the exchange executes in three parts.
async fn fill_in_parts(story: &mut Story, cast: &Cast) -> Uuid {
    let (before, intent) = (position(cast).await, cast.signal_without_fill().await);
    cast.settled(&[intent]).await;
    for part in [VOLUME / 4, VOLUME / 2, VOLUME] {
        cast.execute(intent, part).await;
        story.comes_to("the position has the part", async || position(cast).await - before, part).await;
    }
    let fills = format!("select count(*) from fill where order_intent_id = {}", cast.database.id(intent));
    story.equal("fills of an order in three parts", cast.database.count(&fills).await, 3);
    intent
}

/// The seven answers, with the worker killed.
async fn kill(story: &mut Story, cast: &Cast) -> Vec<Uuid> {
    story.part(
        "The seven answers of the exchange, and a worker that is killed (SIGKILL) with all seven in hand",
    );
    let short = [Moment::Never, Moment::Requested, Moment::Sent, Moment::Settled];
    let moments: &[Moment] = if story.options().long { &Moment::ALL } else { &short };
    let mut intents = Vec::new();
    for moment in moments {
        let of_round = round(cast, *moment, &Conduct::ALL).await;
        let broken = broken(cast, &of_round).await;
        story.tell(format!("{}: {} intents were seen through", said(*moment), of_round.len()));
        story.holds("one order per intent, no identifier sent twice", broken.is_empty(), shown(&broken));
        intents.extend(of_round);
    }
    intents
}

fn shown(broken: &BTreeMap<String, String>) -> String {
    if broken.is_empty() { "all".to_owned() } else { format!("not {broken:?}") }
}

fn said(moment: Moment) -> &'static str {
    match moment {
        Moment::Never => "not killed",
        Moment::Received => "killed before anything was written",
        Moment::Requested => "killed after REQUESTED was written",
        Moment::Sent => "killed while the exchange had the request",
        Moment::Answered => "killed before the answer was written",
        Moment::Settled => "killed before the command was marked as done",
    }
}

async fn begin_second_half(story: &Story, cast: &Cast) -> (Program, Program, String) {
    let (worker, metrics) = cast.worker("worker-3", &[("EVERBIT_LEASE_MS", "5000")]).await;
    let relay = cast.relay("everbit.toml", &[]);
    story.tell("a new worker, and postrider relay for the results of backtests");
    (worker, relay, metrics)
}

/// The kill switch stops an order that is queued.
async fn stop(story: &mut Story, cast: &Cast) -> Uuid {
    story.part("The kill switch");
    cast.post("/kill-switch", &json!({ "engaged": true, "ownerId": "OWNER" })).await;
    let before = cast.book().await.orders.len();
    let intent = cast.signal(Conduct::Place).await;
    cast.settled(&[intent]).await;
    story.equal("state of the attempt", cast.attempts(intent).await, vec!["REJECTED".to_owned()]);
    story.equal("orders that were sent", cast.book().await.orders.len() - before, 0);
    cast.post("/kill-switch", &json!({ "engaged": false, "ownerId": "OWNER" })).await;
    cast.see_through(&[intent]).await;
    story.tell("the switch is off again, and a second attempt was asked for");
    story.equal("orders of that intent", cast.book().await.orders_of(intent), 1);
    intent
}

/// A backtest that fails for a while, and one that can't be helped until an operator corrects it.
async fn backtest(story: &mut Story, cast: &Cast) {
    story.part("Backtests: one is retried, one is dead");
    let subject =
        |market: &str| json!({ "ownerId": "OWNER", "strategyKey": "EXTREME_FLIP", "market": market });
    cast.direct("/candle-status", &json!(503)).await;
    cast.post("/backtests", &subject("KRW-BTC")).await;
    let retried =
        "select count(*) from outbox_event where status = 'PENDING' and last_error_code = 'retryable'";
    until("it is retried", async || cast.database.count(retried).await == 1).await;
    story.tell("the exchange answers 503: the backtest waits for its retry");
    cast.direct("/candle-status", &Value::Null).await;
    let (_, made) = cast.post("/backtests", &subject("XYZ-ABC")).await;
    let dead = "select count(*) from outbox_event where status = 'DEAD'";
    until("it is dead", async || cast.database.count(dead).await == 1).await;
    story.tell("a market that does not exist: dead at the first failure");
    let (_, list) = cast.postrider(&["dead", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap_or_default();
    let id = list[0]["event"]["event_id"].as_str().unwrap_or_default().to_owned();
    let corrected = json!({ "jobId": made["jobId"], "market": "KRW-ETH" }).to_string();
    let replace = ["dead", "replace", &id, "--payload", &corrected, "--yes", "--why", "a wrong market"];
    let (code, _) = cast.postrider(&replace);
    story.equal("exit code of postrider dead replace", code, Some(0));
    let finished = "select count(*) from backtest_job where status = 'FINISHED'";
    comes_to(story, cast, "backtests that are finished", finished, 2).await;
    let results = async || envelopes(&cast.get(&format!("{}/results", cast.push)).await);
    story.comes_to("results in the document's envelope", results, 2).await;
}

/// How many of these have the nine fields of the envelope.
fn envelopes(results: &Value) -> usize {
    const FIELDS: [&str; 9] = [
        "schemaVersion",
        "eventId",
        "type",
        "occurredAt",
        "traceId",
        "ownerId",
        "strategyKey",
        "market",
        "payload",
    ];
    let results = results.as_array().cloned().unwrap_or_default();
    let whole = |result: &&Value| FIELDS.iter().all(|name| !result[name].is_null());
    results.iter().filter(whole).count()
}

/// What must be refused: a replay of trades, and market data.
async fn refuse(story: &mut Story, cast: &Cast) {
    story.part("What is refused");
    let replay = ["replay", "order-executor-worker", "--since", "1h", "--yes", "--why", "a test"];
    let (code, sentence) = cast.postrider(&replay);
    story.holds("a replay of orders", code == Some(1), sentence.trim());
    let refusal = ticker::publish(&cast.database).await;
    story.holds("a ticker", refusal.contains("is not allowed"), refusal);
}

/// The figures at the end.
async fn count(story: &mut Story, cast: &Cast, intents: &[Uuid]) {
    story.part("Counted at the end");
    let book = cast.book().await;
    let wanted = i64::try_from(intents.len()).unwrap_or_default();
    story.equal("intents", cast.database.count("select count(*) from order_intent").await, wanted);
    let one_each = intents.iter().filter(|intent| book.orders_of(**intent) == 1).count();
    story.equal("intents with exactly one order at the exchange", one_each, intents.len());
    let most = book.requests.values().max().copied().unwrap_or_default();
    story.equal("how often an identifier was sent at most", most, 1);
    let states = "select status, count(*) from order_attempt group by status order by status";
    let states = cast.database.table(states).await;
    let figure = |name: &str| states.iter().find(|(state, _)| state == name).map_or(0, |(_, count)| *count);
    story.figure("attempts by state", format!("{states:?}"));
    story.equal("attempts that are ACKED", figure("ACKED"), wanted);
    story.equal("attempts that are open or unknown", figure("REQUESTED") + figure("UNKNOWN"), 0);
    let accepted = "select count(*) from outbox_event where event_type = 'OrderAccepted'";
    story.equal("events OrderAccepted", cast.database.count(accepted).await, wanted);
    let filled = "select cast(sum(volume) as bigint) from fill";
    comes_to(story, cast, "filled in units of 1e-8", filled, wanted * VOLUME).await;
    story.equal("position in units of 1e-8", position(cast).await, wanted * VOLUME);
    let open = "select count(*) from outbox_event where status not in ('DONE', 'DEAD')";
    comes_to(story, cast, "events that are neither done nor dead", open, 0).await;
    let dead = "select count(*) from outbox_event where status = 'DEAD'";
    story.equal("dead events, replaced by hand", cast.database.count(dead).await, 1);
    // Each notice says something else: the order and what became of it.
    let pushes = cast.get(&format!("{}/push", cast.push)).await.as_array().cloned().unwrap_or_default();
    let different: BTreeSet<String> = pushes.iter().map(Value::to_string).collect();
    story.equal("notices that the push service got twice", pushes.len() - different.len(), 0);
    let logged = cast.database.count("select count(*) from notification_log").await;
    let lost = logged - i64::try_from(pushes.len()).unwrap_or_default();
    story.figure("notices, and those that a killed worker lost", format!("{}, {lost}", pushes.len()));
    let events = "select stream, count(*) from outbox_event group by stream order by stream";
    story.figure("events by stream", format!("{:?}", cast.database.table(events).await));
}

/// The same handlers behind Kafka, by one setting.
async fn change_the_bus(story: &mut Story, cast: &mut Cast) {
    story.part("The bus is a setting: Kafka instead of the outbox");
    let (brokers, prefix) = (address::kafka(), unique("everbit-story-"));
    let port = brokers.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default();
    let topics = story::topics::parse(include_str!("../../topics.txt")).unwrap_or_default();
    story::topics::create(port, &topics, &prefix);
    let settings =
        [("EVERBIT_BUS", "kafka"), ("EVERBIT_BROKERS", &brokers), ("EVERBIT_TOPIC_PREFIX", &prefix)];
    let api = cast.serve_with("api", &settings).await;
    let (worker, _) = cast.worker("kafka-worker", &settings).await;
    let intent = cast.signal_at(&api, Conduct::Place).await;
    cast.settled(&[intent]).await;
    story.tell("a signal went through Kafka, by the same handlers");
    story.equal("orders of that intent", cast.book().await.orders_of(intent), 1);
    story.equal("state of the attempt", cast.attempts(intent).await, vec!["ACKED".to_owned()]);
    let untold = "select (select count(*) from order_intent)
                  - (select count(*) from notification_log where text like '%accepted')";
    comes_to(story, cast, "orders that the owner was not told of", untold, 0).await;
    worker.stop().await;
}

fn addresses(story: &mut Story, cast: &Cast, metrics: &str) {
    story.address("API", &cast.api);
    story.address("exchange, its book", format!("{}/book", cast.exchange));
    story.address("notices", format!("{}/push", cast.push));
    story.address("metrics of the worker", format!("{metrics}/metrics"));
    story.address("database", cast.database.url());
    let command = story::process::postrider_path();
    for arguments in
        ["status", "dead list", "events --type OrderAccepted", "replay backtest-worker --since 1h --dry-run"]
    {
        let url = cast.database.url();
        story.address(
            format!("postrider {arguments}"),
            format!("{} --store '{url}' {arguments}", command.display()),
        );
    }
}
