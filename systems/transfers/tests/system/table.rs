//! The document's table.

use serde_json::json;

use crate::support::stage;

/// X1: the view has the document's name and columns, and an event is in it from its commit on.
#[tokio::test(flavor = "multi_thread")]
async fn the_document_s_table_is_there_with_its_columns() {
    let stage = stage().await;
    let sql = "select column_name::text from information_schema.columns where table_name = 'transfer_events'
        and column_name <> 'position' order by ordinal_position";
    let columns: Vec<String> = sqlx::query_scalar(sql).fetch_all(&stage.db).await.expect("columns");
    let wanted = [
        "event_id",
        "aggregate_type",
        "aggregate_id",
        "event_type",
        "payload",
        "headers",
        "status",
        "attempt_count",
        "next_retry_at",
        "created_at",
        "updated_at",
        "published_at",
        "last_error",
    ];
    assert_eq!(columns, wanted);
    let (_service, client) = stage.api().await;
    client.open_accounts(2).await;
    client.transfer("account-0", "account-1", 5).await.expect("an answer");
    assert_eq!(stage.in_status("PENDING").await, 1, "before the first relay was ever there");
    let relay = stage.relay("relay-0", &[]);
    postrider_testkit::until("it is published", async || stage.in_status("PUBLISHED").await == 1).await;
    let published = "select count(*) from transfer_events where published_at >= created_at and attempt_count = 0 and last_error is null";
    assert_eq!(stage.number(published).await, 1);
    drop(relay);
}

/// T3: source, trace and the publisher's own headers are in the table, on the record and in the risk log.
#[tokio::test(flavor = "multi_thread")]
async fn headers_go_with_the_event_to_fraud_detection() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let stage = stage().await;
    let (_service, client) = stage.api().await;
    client.open_accounts(2).await;
    let body =
        json!({ "from": "account-0", "to": "account-1", "amount": 5, "attributes": { "channel": "mobile" } });
    let answer = client.transfer_with(&[("traceparent", TRACE)], &body).await.expect("an answer");
    let event = answer.event().expect("it happened");
    let _processes = (stage.relay("relay-0", &[]), stage.fraud("fraud"));
    stage.until_analysed().await;
    let wanted = ["/transaction-service", TRACE, "mobile"].map(str::to_owned);
    for table in ["transfer_events", "fds.risk_log"] {
        let sql = format!(
            "select array[h ->> 'source', h ->> 'traceparent', h ->> 'channel']
             from (select headers::jsonb as h from {table} where event_id = $1) as found"
        );
        let found: Vec<Option<String>> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(event)
            .fetch_one(&stage.db)
            .await
            .expect("its headers");
        let found: Vec<String> = found.into_iter().flatten().collect();
        assert_eq!(found, wanted, "{table}");
    }
}
