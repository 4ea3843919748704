//! The audit feed: it keeps every event as it came, also those of types and versions that nobody else knows.

use postrider::kafka::Consumer;
use postrider::mysql::{Outbox, Tx};
use postrider::{Failure, Raw, Received};

use super::Topics;

/// The consumer that keeps the feed.
pub fn audit(outbox: &Outbox, topics: &Topics) -> Consumer<Outbox> {
    topics.consumer(outbox, "ledger-audit").on_other(keep)
}

async fn keep(event: Received<Raw>, mut tx: Tx) -> Result<(), Failure> {
    let event = event.event();
    // One that is there stays as it is. What the table can't hold is an error: `insert ignore` would keep zeros of it.
    let sql =
        "insert into audit_feed (event_id, event_type, transaction_id, account_id, sequence, schema_version,
                   payload, occurred_at, recorded_at, received_at)
               values (?, ?, ?, ?, ?, ?, ?, ?, ?, utc_timestamp(6))
               on duplicate key update event_id = event_id";
    let keep = sqlx::query(sql).bind(event.event_id).bind(event.event_type.to_string());
    let keep = keep.bind(&event.aggregate_id).bind(event.key().into_owned()).bind(event.sequence);
    let keep = keep.bind(event.headers.schema_version()).bind(event.payload.as_json().map(str::to_owned));
    keep.bind(event.occurred_at).bind(event.recorded_at).execute(&mut *tx).await?;
    Ok(())
}
