//! One topic for all, or one per type; in both, the order of each account.

use std::collections::{BTreeMap, BTreeSet};

use ledger::story::stage::TopicOption;
use ledger::story::topic::{Record, records};
use postrider_testkit::address;

use crate::support::{deposit, insist, reverse, stage, transfer};

/// The numbers of each account, partition by partition in their order.
fn numbers(found: &[Record]) -> BTreeMap<String, Vec<i64>> {
    let mut numbers: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for record in found {
        numbers.entry(record.key.clone()).or_default().push(record.sequence);
    }
    numbers
}

/// Each account is in one partition, and not all are in the same.
fn assert_partitioned(found: &[Record]) {
    let pairs: BTreeSet<(&str, i32)> =
        found.iter().map(|record| (record.key.as_str(), record.partition)).collect();
    let accounts: BTreeSet<&str> = pairs.iter().map(|(account, _)| *account).collect();
    assert_eq!(pairs.len(), accounts.len(), "one partition per account: {pairs:?}");
    assert!(pairs.iter().map(|(_, partition)| partition).collect::<BTreeSet<_>>().len() > 1, "{pairs:?}");
}

/// Eight accounts, four writers, transfers in all directions, and some reversals; with two relays and the read model.
async fn act(option: TopicOption) -> BTreeMap<String, Vec<Record>> {
    let stage = &stage(option).await;
    let ledger = &stage.ledger;
    let _relays = [stage.relay("one"), stage.relay("two")];
    let consumer = stage.consumer("read-model", &[]).await;
    for account in 1..=8 {
        deposit(ledger, account, account, 1000).await.expect("posted");
    }
    let write = async |writer: i64| {
        for number in 0..10 {
            let (from, to) = ((writer + number) % 8 + 1, (writer * 3 + number + 4) % 8 + 1);
            if from == to {
                continue;
            }
            let id = 100 * (writer + 1) + number;
            insist(|| transfer(ledger, id, from, to, 5)).await;
            if number % 3 == 0 {
                insist(|| reverse(ledger, 10_000 + id, id)).await;
            }
        }
    };
    tokio::join!(write(0), write(1), write(2), write(3));
    stage.all_processed().await;
    stage.read_model_is_level().await;
    let log = consumer.log();
    assert!(!log.contains("is missing") && !log.contains("ERROR"), "no gap is reported: {log}");
    let events = stage.number("select count(*) from postrider_event").await;
    let topics: BTreeMap<_, _> = stage
        .topics()
        .into_iter()
        .map(|topic| {
            let name = topic.trim_start_matches(&stage.prefix).to_owned();
            (name, records(&address::kafka(), &topic))
        })
        .collect();
    let found: usize = topics.values().map(Vec::len).sum();
    assert_eq!(found as i64, events, "every event once, and nothing else");
    topics
}

/// L11, L12: option A: one topic; each account has one partition, and its events come in order, numbered without a gap.
#[tokio::test(flavor = "multi_thread")]
async fn one_topic_has_the_events_of_each_account_in_order_without_a_gap() {
    let topics = act(TopicOption::A).await;
    assert_eq!(topics.keys().collect::<Vec<_>>(), ["ledger-events"]);
    let found = &topics["ledger-events"];
    assert_partitioned(found);
    for (account, numbers) in numbers(found) {
        assert!(numbers.iter().copied().eq(1..=numbers.len() as i64), "{account}: {numbers:?}");
    }
    let kinds: BTreeSet<&str> = found.iter().map(|record| record.event_type.as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(["LEDGER_POSTED", "LEDGER_REVERSED"]));
    // A reversal comes behind what it takes back, for each account.
    let place = |key: &str, transaction: i64| {
        let of = format!("\"transactionId\":{transaction},");
        found.iter().position(|record| record.key == key && record.value.contains(&of)).expect("it is there")
    };
    for reversal in found.iter().filter(|record| record.event_type == "LEDGER_REVERSED") {
        let payload: serde_json::Value = serde_json::from_str(&reversal.value).expect("JSON");
        let [own, of] = ["transactionId", "reverses"].map(|field| payload[field].as_i64().expect(field));
        assert!(place(&reversal.key, of) < place(&reversal.key, own), "{reversal:?}");
    }
}

/// L12: option B, by one setting: a topic per type, with the events of its type alone, in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_per_type_has_the_events_of_its_type_in_order() {
    let topics = act(TopicOption::B).await;
    assert_eq!(topics.keys().collect::<Vec<_>>(), ["ledger-posted-events", "ledger-reversed-events"]);
    for (topic, kind) in
        [("ledger-posted-events", "LEDGER_POSTED"), ("ledger-reversed-events", "LEDGER_REVERSED")]
    {
        assert!(topics[topic].iter().all(|record| record.event_type == kind), "{topic}");
        assert_partitioned(&topics[topic]);
        for (account, numbers) in numbers(&topics[topic]) {
            assert!(numbers.is_sorted_by(|one, next| one < next), "{topic} {account}: {numbers:?}");
        }
    }
}
