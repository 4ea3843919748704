//! What the API refuses, and what becomes of consumers that can't go on.

use ledger::adapters::api;
use ledger::story::stage::{Stage, TopicOption};
use rdkafka::mocking::MockCluster;
use rdkafka::types::RDKafkaApiKey;
use rdkafka::types::RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID as FENCED;
use serde_json::{Value, json};

use crate::support::{World, program};

/// What can never be posted is refused with 422 and one sentence, not with 503: a client that is told that the ledger can't answer now would ask
/// for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_can_never_succeed_is_refused_with_a_sentence() {
    let World { ledger, database: _database } = World::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let router = api::router(ledger.clone());
    tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    let client = story::process::client();
    let send = async |path: &str, body: Value| {
        let answer = client.post(format!("{url}/{path}")).json(&body).send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.expect("JSON")["error"].as_str().unwrap_or_default().to_owned())
    };
    let one = |memo: &str, amount: i64| json!({ "transactionId": 7, "accountId": 1, "amount": amount, "memo": memo });
    let two = |memo: &str| json!({ "transactionId": 7, "fromAccountId": 1, "toAccountId": 2, "amount": 5, "memo": memo });
    let (nul, long) = ("the memo must not contain a NUL character", "the memo must have at most 60000 bytes");
    for (path, body, says) in [
        ("deposits", one("a\0b", 5), nul),
        ("withdrawals", one("\0", 5), nul),
        ("transfers", two("a\0"), nul),
        ("deposits", one(&"x".repeat(60_001), 5), long),
        ("transfers", two(&"x".repeat(60_001)), long),
        ("deposits", one("", 0), "the amount must be greater than 0"),
    ] {
        assert_eq!(send(path, body).await, (422, says.to_owned()), "{path}");
    }
    let rows = "select (select count(*) from transactions) + (select count(*) from postrider_event)";
    let rows: i64 = sqlx::query_scalar(rows).fetch_one(ledger.pool()).await.expect("a count");
    assert_eq!(rows, 0);
    // As many bytes as a memo may have, and each of them longer in JSON: the payload is within its limit.
    assert_eq!(send("deposits", one(&"\u{1}".repeat(60_000), 5)).await.0, 200);
}

/// A consumer that has ended does not live on as if all were well: its process fails with a sentence, and whoever runs it starts another
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_ends_by_itself_ends_its_process_with_a_failure() {
    let mock = MockCluster::new(1).expect("a mock");
    let stage = Stage::without_topics(program(), &mock.bootstrap_servers(), TopicOption::A).await;
    mock.create_topic(&stage.topics()[0], 6, 1).expect("a topic");
    let mut audit = stage.consumer("audit", &[]).await;
    mock.request_errors(RDKafkaApiKey::Heartbeat, &[FENCED; 100]);
    assert_eq!(audit.exit_code(), Some(1), "{}", audit.log());
    assert!(audit.log().contains("the consumer has stopped because of a fatal error"), "{}", audit.log());
}
