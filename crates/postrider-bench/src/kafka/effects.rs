//! A consumer with transactional handlers and an inbox: many records in a transaction against one transaction a record.

use std::sync::Arc;
use std::time::Instant;

use postrider_kafka::{Consumer, Kafka, Offsets};
use postrider_postgres::Outbox;
use postrider_relay::{Received, Tx};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::types::RDKafkaErrorCode as Code;
use sqlx::AssertSqlSafe;

use crate::data::{Bench, OrderPaid};
use crate::engine::{Tally, new_name};
use crate::kafka::{Topic, brokers};
use crate::report::Report;
use crate::{AnyError, in_turns};

/// How many records share a transaction.
const TOGETHER: usize = 100;

/// Fills the topic with records as a relay writes them.
fn fill(topic: &str, events: u64) -> Result<(), AnyError> {
    let producer: BaseProducer = Kafka::builder(&brokers()?).client().create()?;
    for number in 0..events {
        let (id, key) = (uuid::Uuid::now_v7().to_string(), (number % 5000).to_string());
        let headers = [
            ("ce_specversion", "1.0"),
            ("ce_id", &id),
            ("ce_source", "shop"),
            ("ce_type", "OrderPaid"),
            ("ce_subject", &key),
            ("ce_time", "2026-01-01T00:00:00.123456Z"),
            ("content-type", "application/json"),
        ];
        let headers = headers.into_iter().fold(OwnedHeaders::new(), |headers, (name, value)| {
            headers.insert(Header { key: name, value: Some(value) })
        });
        let payload = serde_json::to_vec(&OrderPaid::of(number))?;
        let mut record = BaseRecord::to(topic).key(&key).payload(&payload).headers(headers);
        while let Err((error, back)) = producer.send(record) {
            if error.rdkafka_error_code() != Some(Code::QueueFull) {
                return Err(error.into());
            }
            producer.poll(std::time::Duration::from_millis(1));
            record = back;
        }
    }
    Ok(producer.flush(std::time::Duration::from_secs(60))?)
}

/// A new group reads the topic from its beginning, until the effect of every record is committed. Records per second, from the
/// first handler on: joining a group takes seconds, whatever follows.
async fn consume(bench: &Bench, topic: &str, events: u64, max_tx_batch: usize) -> Result<f64, AnyError> {
    bench.run("truncate {schema}.effect").await?;
    let (tally, began) = (Tally::new(events), Arc::new(std::sync::OnceLock::new()));
    let sql: Arc<str> =
        format!("insert into {}.effect (order_id, note) values ($1, $2)", bench.schema).into();
    let (counted, first) = (Arc::clone(&tally), Arc::clone(&began));
    let consumer = Consumer::new(&bench.outbox, &brokers()?, &new_name())
        .topics([topic])
        .from(Offsets::Earliest)
        .records_per_poll(1000)
        .max_tx_batch(max_tx_batch)
        .on(move |event: Received<OrderPaid>, mut tx: Tx<Outbox>| {
            let (counted, sql) = (Arc::clone(&counted), Arc::clone(&sql));
            first.get_or_init(Instant::now);
            async move {
                let event = event.into_inner();
                let query = sqlx::query(AssertSqlSafe(sql));
                query.bind(event.order.cast_signed()).bind(event.note).execute(&mut *tx).await?;
                counted.add();
                Ok::<(), sqlx::Error>(())
            }
        });
    let running = consumer.start().await?;
    tally.wait().await?;
    // The last ones are handled, but not committed yet.
    running.stop().await?;
    let seconds = began.get().ok_or("nothing was handled")?.elapsed().as_secs_f64();
    let sql = format!("select count(*) from {}.effect", bench.schema);
    let effects: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&bench.pool).await?;
    if effects != events.cast_signed() {
        return Err(format!("{events} records had {effects} effects").into());
    }
    Ok(events as f64 / seconds)
}

/// The bar of a consumer's effects.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (many, few, turns) = if quick { (20_000, 4_000, 3) } else { (60_000, 10_000, 3) };
    let bench = Bench::new(24).await?;
    bench
        .run(
            "create table {schema}.effect (id bigserial primary key, order_id bigint not null, note text not null);
             alter table {schema}.effect set (autovacuum_enabled = false)",
        )
        .await?;
    let (long, short) = (Topic::new().await?, Topic::new().await?);
    report.say(&format!("filling topics with {many} and {few} records"));
    for (topic, events) in [(&long, many), (&short, few)] {
        let name = topic.name.clone();
        tokio::task::spawn_blocking(move || fill(&name, events)).await??;
    }
    report.say("a consumer with transactional handlers: one record a transaction, in turns with many");
    let (alone, together, ratio) = in_turns(
        turns,
        async || consume(&bench, &short.name, few, 1).await,
        async || consume(&bench, &long.name, many, TOGETHER).await,
    )
    .await?;
    let detail = format!(
        "{together:.0} records/s with up to {TOGETHER} in a transaction against {alone:.0}, the ratio of neighbouring turns; \
         both in 4 partitions, up to 16 keys at once"
    );
    report.at_least(
        "consumer with an inbox, batched / one transaction a record",
        ratio,
        5.0,
        "times",
        &detail,
    );
    short.close().await?;
    long.close().await?;
    bench.close().await
}
