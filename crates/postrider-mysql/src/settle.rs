//! Writing what became of a batch, all of it or nothing.

use postrider_core::{
    DeliveryChange, DeliveryState, EventRef, Lease, LeaseStatus, PastAttempt, Result, Settlement, Uuid,
};
use postrider_sql::clock::{given, micros_of};
use postrider_sql::json::{ids, refs};
use postrider_sql::position::number_of;
use postrider_sql::{Columns, statement};
use serde_json::json;

use crate::lane::lease_status;
use crate::sql::call;
use crate::store::MySqlStore;

const OP: &str = "settle";

/// Settles a batch under its lease.
pub(crate) async fn settle(
    store: &MySqlStore,
    lease: &mut Lease,
    settlement: &Settlement,
) -> Result<LeaseStatus> {
    let (from, to) = (number_of(&settlement.from, OP)?, number_of(&settlement.to, OP)?);
    let reading = settlement.reading.as_ref().map_or(Ok(0), |reading| number_of(reading, OP))?;
    let settle = store.sql.query(statement!("settle.sql")).bind(&lease.subscription).bind(lease.lane);
    let settle = settle.bind(lease.epoch).bind(&lease.owner).bind(from).bind(to).bind(reading);
    let settle = settle.bind(settlement.count).bind(given(&store.clock));
    let witness = settlement.witness.as_ref().filter(|_| from != to);
    let settle = settle
        .bind(changes(&settlement.deliveries, settlement.one_by_one, lease.epoch))
        .bind(witness.map(|witness| witness.number));
    let settle = settle.bind(witness.map(|witness| witness.id.as_str())).bind(settlement.one_by_one);
    let settle = settle.bind(effects(&settlement.effects)).bind(succeeded(&settlement.succeeded));
    let mut conn = store.conn(OP).await?;
    let settled = call(settle, &mut conn, OP).await?;
    let status = lease_status(&settled, OP)?;
    if status != LeaseStatus::Lost {
        lease.position = settlement.to.clone();
        lease.open = settled.flag("open", OP)?;
    }
    Ok(status)
}

fn effects(events: &[Uuid]) -> Option<String> {
    (!events.is_empty()).then(|| ids(events))
}

fn succeeded(events: &[EventRef]) -> Option<String> {
    (!events.is_empty()).then(|| refs(events.iter().map(|event| (event.id, event.event_id))))
}

/// All tries of a settle together take no more than this: it is one parameter, written as JSON within JSON, and a server takes no more
/// than `max_allowed_packet`. Where many fail at once, fewer of their tries are kept.
const PAST: usize = 1 << 20;

fn changes(deliveries: &[DeliveryChange], one_by_one: bool, epoch: i64) -> Option<String> {
    let many = deliveries.iter().filter(|change| change.past.is_some()).count().max(1);
    // What was refused is not refused again for what is only there to be shown.
    let room = if one_by_one { 0 } else { PAST / many };
    let changes = deliveries.iter().map(|change| {
        json!({
            "id": change.id, "event_id": change.event_id.simple().to_string(), "state": change.state.as_str(),
            "attempts": change.attempts, "retry_in": micros_of(change.retry_in),
            "code": change.failure.as_ref().map(|failure| &failure.code),
            "message": change.failure.as_ref().map(|failure| &failure.message),
            "past": change.past.as_deref().and_then(|past| PastAttempt::encode_within(past, room)),
            "epoch": (change.state == DeliveryState::Running).then_some(epoch),
        })
    });
    (!deliveries.is_empty()).then(|| serde_json::Value::from_iter(changes).to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use postrider_core::{DeliveryFailure, Excerpt, OffsetDateTime};

    use super::*;

    #[test]
    fn a_settle_of_many_failures_stays_small_whatever_was_answered() {
        let mut failure = DeliveryFailure::new("http_500", "\u{432}".repeat(300));
        failure.answer = Excerpt::new("\u{432}".repeat(500).as_bytes());
        let attempt = PastAttempt::new(OffsetDateTime::UNIX_EPOCH, "relay", Some(Duration::ZERO), &failure);
        let change = |id: i64| DeliveryChange {
            id,
            event_id: Uuid::nil(),
            state: DeliveryState::Retrying,
            attempts: 10,
            retry_in: Duration::ZERO,
            failure: Some(DeliveryFailure::new("http_500", "no")),
            past: Some(vec![attempt.clone(); 10]),
        };
        let size = |many: i64, one_by_one| {
            let changes: Vec<_> = (0..many).map(change).collect();
            super::changes(&changes, one_by_one, 1).expect("changes").len()
        };
        assert!(size(1, false) > 20_000, "one has all its tries");
        assert!(size(1_000, false) < 3 << 20 && size(5_000, false) < 3 << 20, "{}", size(1_000, false));
        assert!(size(1_000, true) < 1 << 20, "one by one they go without");
    }
}
