//! What the transaction service refuses, and what becomes of fraud detection when it can't go on.

use rdkafka::mocking::MockCluster;
use rdkafka::types::RDKafkaApiKey;
use rdkafka::types::RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID as FENCED;
use serde_json::{Value, json};
use transfers::adapters::http::router;

use crate::repeating::{error, serve};
use crate::support::stage;
use crate::unit_of_work::{balances, bank, counts};

/// T3: what can never be recorded is refused with 422 and one sentence, not with 503. That is also the name of an attribute that has a meaning: with
/// `schema_version` a client could have fraud detection wait for a newer program, and with the others forge where an event comes from.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_can_never_succeed_is_refused_with_a_sentence() {
    let stage = stage().await;
    let units = bank(&stage).await;
    let service = serve(router(units.clone())).await;
    let whole = json!({ "from": "a", "to": "b", "amount": 5, "memo": "", "attributes": {} });
    let nul = "from, to, memo and attributes must not contain a NUL character";
    let mut cases: Vec<(&str, Value, String)> = vec![
        ("from", json!("a\0"), nul.into()),
        ("to", json!("\0"), nul.into()),
        ("memo", json!("a\0b"), nul.into()),
        ("memo", json!("x".repeat(1 << 20)), "more than the limit of 1048576".into()),
        ("attributes", json!({ "device": "a\0b" }), nul.into()),
        (
            "attributes",
            json!({ "a\0b": "x" }),
            "the name of a header must not contain a NUL character".into(),
        ),
        ("attributes", json!({ "": "x" }), "the name of a header must not be empty".into()),
        ("attributes", json!({ "device": "x".repeat(64 << 10) }), "more than the limit of 65536".into()),
    ];
    for name in [
        "schema_version",
        "source",
        "traceparent",
        "tenant",
        "correlation_id",
        "causation_id",
        "ce_type",
        "Tenant",
    ] {
        let sentence = format!("the header {name} is reserved; choose another name");
        cases.push(("attributes", json!({ name: "2" }), sentence));
    }
    for (field, value, says) in cases {
        let mut body = whole.clone();
        body[field] = value;
        let answer = service.transfer_with(&[], &body).await.expect("an answer");
        assert_eq!(answer.status, 422, "{field}, {says}: {:?}", answer.body);
        assert!(error(&answer).contains(&says), "{field}: {:?}", answer.body);
    }
    for (id, status) in [("c\0", 422), ("", 422), ("c", 201)] {
        assert_eq!(service.open(id, 5).await.expect("an answer").status, status, "{id:?}");
    }
    assert_eq!((balances(&units).await, counts(&stage).await), ([1000, 1000], [0, 0]));

    let mut body = whole;
    body["attributes"] = json!({ "channel": "mobile" });
    let trace = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")];
    assert_eq!(service.transfer_with(&trace, &body).await.expect("an answer").status, 201);
    let headers =
        "select count(*) from transfer_events where headers::json ->> 'source' = '/transaction-service'
        and headers::json ->> 'channel' = 'mobile'";
    assert_eq!(stage.number(headers).await, 1);
}

/// A consumer that has ended does not live on as if all were well: its process fails with a sentence, and whoever runs it starts another
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn fraud_detection_that_ends_by_itself_ends_its_process_with_a_failure() {
    let stage = stage().await;
    let mock = MockCluster::new(1).expect("a mock");
    for topic in ["transfers", "transfers.DLT"] {
        mock.create_topic(topic, 1, 1).expect("a topic");
    }
    let brokers = mock.bootstrap_servers();
    let variables = [("KAFKA_BROKERS", brokers.as_str()), ("TOPIC", "transfers")];
    let mut fraud = stage.fraud_with("fenced", "fenced", &variables);
    mock.request_errors(RDKafkaApiKey::Heartbeat, &[FENCED; 100]);
    assert_eq!(fraud.exit_code(), Some(1), "{}", fraud.log());
    assert!(fraud.log().contains("the consumer has stopped because of a fatal error"), "{}", fraud.log());
}
