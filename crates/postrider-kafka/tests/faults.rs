//! Each error that a broker can answer with, and answers that are lost, on librdkafka's mock.

#[path = "support/events.rs"]
mod events;

use std::sync::Arc;
use std::time::{Duration, Instant};

use events::{PATIENCE, deliver_all, deliver_all_and, delivery, event, firsts, mock, versions};
use postrider::store::{Outcome, Sink};
use postrider::{Order, Recorded};
use postrider_kafka::{ErrorClass, Kafka};
use rdkafka::types::RDKafkaApiKey;
use rdkafka::types::RDKafkaRespErr::{self, *};
use tokio::task::{JoinSet, LocalSet};

/// What each error of a broker leads to.
const ANSWERS: &[(RDKafkaRespErr, ErrorClass)] = &[
    (RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, ErrorClass::Unavailable),
    (RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, ErrorClass::Reject),
    (RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, ErrorClass::Reject),
    (RD_KAFKA_RESP_ERR_INVALID_RECORD, ErrorClass::Reject),
    (RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, ErrorClass::Reject),
    (RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorClass::Reject),
    (RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, ErrorClass::HoldTopic),
    (RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID, ErrorClass::HoldTopic),
    (RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, ErrorClass::HoldTopic),
    (RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, ErrorClass::HoldTopic),
    (RD_KAFKA_RESP_ERR_POLICY_VIOLATION, ErrorClass::HoldTopic),
    (RD_KAFKA_RESP_ERR_INVALID_MSG, ErrorClass::Retry),
    (RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, ErrorClass::Retry),
    (RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, ErrorClass::Retry),
];

/// What is made of an outcome of one event.
fn class_of(
    result: &Result<(), postrider::store::Unavailable>,
    outcome: Option<&Outcome>,
) -> Option<ErrorClass> {
    match (result, outcome) {
        (Err(_), None) => Some(ErrorClass::Unavailable),
        (Ok(()), Some(Outcome::Retry { .. })) => Some(ErrorClass::Retry),
        (Ok(()), Some(Outcome::Reject { .. })) => Some(ErrorClass::Reject),
        (Ok(()), Some(Outcome::Hold { .. })) => Some(ErrorClass::HoldTopic),
        _ => None,
    }
}

/// A broker answers with nothing but this error, until it does not any more.
async fn answered_with(code: RDKafkaRespErr, wanted: ErrorClass) -> Result<(), String> {
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers())
        .send_timeout(Duration::from_secs(2))
        .property("retries", "2")
        .property("retry.backoff.ms", "10")
        .build()
        .expect("a sink");
    // A client that is told of an unknown topic asks once more which there are: a broker does not contradict itself for long.
    let is_unknown = code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if is_unknown {
        deliver_all(&sink, vec![event("a", 0)], Order::Key).await;
        mock.topic_error("orders", code).expect("an unknown topic");
    }
    mock.request_errors(RDKafkaApiKey::Produce, &[code; 5000]);
    let first = delivery(&[event("a", 1)], Order::Key);
    let result = sink.deliver(Arc::clone(&first)).await;
    let outcome = first.take_outcomes().pop().flatten();
    let found = class_of(&result, outcome.as_ref());
    mock.clear_request_errors(RDKafkaApiKey::Produce);
    if is_unknown {
        mock.topic_error("orders", RD_KAFKA_RESP_ERR_NO_ERROR).expect("a known topic");
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let again = delivery(&[event("a", 1)], Order::Key);
        let result = sink.deliver(Arc::clone(&again)).await;
        let outcome = again.take_outcomes().pop().flatten();
        if outcome == Some(Outcome::Delivered) {
            break;
        }
        if Instant::now() > end {
            return Err(format!("{code:?}: it does not recover: {result:?}, {outcome:?}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    if found == Some(wanted) {
        return Ok(());
    }
    Err(format!("{code:?} is {found:?} instead of {wanted:?}: {result:?}, {outcome:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_of_a_broker_has_its_class_and_is_got_over() {
    let mut answers = JoinSet::new();
    // A mock stays on its thread.
    let here = LocalSet::new();
    for (code, wanted) in ANSWERS {
        answers.spawn_local_on(answered_with(*code, *wanted), &here);
    }
    let answers = here.run_until(answers.join_all()).await;
    let wrong: Vec<String> = answers.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The mock appends at once and answers later: what goes down in between has taken records that nobody heard of.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_lost_lose_nothing_and_reorder_no_key() {
    let rounds = if std::env::var_os("POSTRIDER_SOAK").is_some() { 30 } else { 3 };
    for round in 1..=rounds {
        for order in [Order::Key, Order::Strict] {
            lose_answers(order, round).await;
        }
    }
}

async fn lose_answers(order: Order, round: u64) {
    const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
    const BATCH: i64 = 200;
    let mock = mock(2);
    let sink = Kafka::builder(&mock.bootstrap_servers())
        .send_timeout(Duration::from_secs(2))
        .property("batch.num.messages", "7")
        .build()
        .expect("a sink");
    let mut events: Vec<Recorded> = Vec::new();
    for _ in 0..5 {
        let last = events.len() as i64;
        // Runs of a key: under strict order they go together.
        let new = |version| event(KEYS[(version / 10) as usize % KEYS.len()], version);
        let batch: Vec<Recorded> = (last + 1..=last + BATCH).map(new).collect();
        // One goes through, so that the next are on their way at once.
        deliver_all(&sink, batch[..1].to_vec(), order).await;
        mock.broker_round_trip_time(1, PATIENCE).expect("no answers");
        let breaking = async {
            // Each round breaks at another moment.
            tokio::time::sleep(Duration::from_millis(50 + 37 * round % 200)).await;
            mock.broker_down(1).expect("down");
            mock.broker_round_trip_time(1, Duration::ZERO).expect("quick answers");
            mock.broker_up(1).expect("up");
        };
        tokio::join!(deliver_all(&sink, batch[1..].to_vec(), order), breaking);
        events.extend(batch);
    }
    let found = versions(&mock, 2);
    for key in KEYS {
        let wanted: Vec<i64> =
            events.iter().filter(|event| event.aggregate_id == key).map(|event| event.id).collect();
        assert_eq!(firsts(&found[key]), wanted, "{order} {key} in round {round}: {:?}", found[key]);
    }
    let again = found.values().map(Vec::len).sum::<usize>() - events.len();
    assert!(again > 0, "{order} in round {round}: no answer was lost, so nothing was tried");
}

/// What fails for a moment is sent again by the client itself; what was sent behind it must not get in before it.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_fail_for_a_moment_reorder_no_key() {
    use RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR as FINE;
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers())
        .property("batch.num.messages", "5")
        .property("retry.backoff.ms", "10")
        .build()
        .expect("a sink");
    deliver_all(&sink, vec![event("a", 1)], Order::Key).await;
    let timed_out = RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT;
    mock.request_errors(RDKafkaApiKey::Produce, &[FINE, timed_out, FINE, FINE, timed_out, timed_out, FINE]);
    let events: Vec<Recorded> = (2..=200).map(|version| event("a", version)).collect();
    deliver_all(&sink, events, Order::Key).await;
    let found = versions(&mock, 1).remove("a").expect("versions");
    assert_eq!(firsts(&found), (1..=200).collect::<Vec<i64>>(), "{found:?}");
}

/// The client's own timeout takes record by record: it gives up the first of a key and sends the next. Here a broker is so
/// slow that some records would wait too long, and those behind them would not.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_time_is_over_is_taken_back_as_a_whole() {
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers())
        .send_timeout(Duration::from_secs(2))
        .property("batch.num.messages", "7")
        .property("queue.buffering.max.messages", "600")
        .build()
        .expect("a sink");
    deliver_all(&sink, vec![event("a", 1)], Order::Key).await;
    mock.broker_round_trip_time(1, Duration::from_millis(150)).expect("slow answers");
    let events: Vec<Recorded> = (2..=1000).map(|version| event("a", version)).collect();
    let mut taken_back = Vec::new();
    deliver_all_and(&sink, events, Order::Key, |result, outcomes| {
        if result.is_err() {
            let taken = outcomes.iter().take_while(|outcome| outcome.is_some()).count();
            taken_back.push((taken, outcomes.iter().flatten().count(), outcomes.len()));
            mock.broker_round_trip_time(1, Duration::ZERO).expect("quick answers");
        }
    })
    .await;
    let (taken, reported, all) = *taken_back.first().expect("the time of a batch was over");
    assert!(taken < all && reported == taken, "none behind the first that was taken back: {taken_back:?}");
    let found = versions(&mock, 1).remove("a").expect("versions");
    let firsts = firsts(&found);
    let gap = firsts.windows(2).find(|pair| pair[1] != pair[0] + 1);
    assert_eq!((firsts.len(), gap), (1000, None));
}
