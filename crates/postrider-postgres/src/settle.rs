//! Settling: the new position, the settled batch and the deliveries, all or nothing.

use postrider_core::{
    DeliveryChange, DeliveryState, Lease, LeaseStatus, PastAttempt, Position, Result, Settlement, Uuid,
};
use sqlx_core::query::Query;
use sqlx_postgres::{PgArguments, Postgres};

use crate::error::during;
use crate::position::LogPosition;
use crate::row;
use crate::store::PgStore;

impl PgStore {
    pub(crate) async fn settle_batch(
        &self,
        lease: &mut Lease,
        settlement: &Settlement,
    ) -> Result<LeaseStatus> {
        if settlement.one_by_one {
            return self.settle_one_by_one(lease, settlement).await;
        }
        let with_deliveries = usize::from(writes_deliveries(settlement));
        // By ctid first; if the row has moved (an extension by another hand), by its key.
        for by_key in [0, 2] {
            let query = self.sql.settle[by_key + with_deliveries].query();
            let query = self.bind_settle(query, lease, settlement)?;
            if let Some(row) = query.fetch_optional(&self.pool).await.map_err(during("settle"))? {
                lease.row_location = row::text(&row, 0)?.to_owned();
                lease.open =
                    row::flag(&row, 2)? || settlement.deliveries.iter().any(|change| is_open(change.state));
                lease.position = settlement.to.clone();
                return Ok(if row::flag(&row, 1)? { LeaseStatus::Recalled } else { LeaseStatus::Held });
            }
        }
        self.elsewhere("settle").await;
        Ok(LeaseStatus::Lost)
    }

    pub(crate) fn bind_settle<'q>(
        &self,
        query: Query<'q, Postgres, PgArguments>,
        lease: &Lease,
        settlement: &Settlement,
    ) -> Result<Query<'q, Postgres, PgArguments>> {
        let from = LogPosition::parse(&settlement.from)?;
        let to = LogPosition::parse(&settlement.to)?;
        let home = self.home();
        let witness = settlement.witness.as_ref();
        // In the middle of late rows, the part's snapshot is that of the read.
        let (seen_in, seen) = match &to.part {
            Some(part) => (part.system, &part.snapshot),
            None => (to.system, &to.snapshot),
        };
        let seen = (seen_in == home.system).then(|| seen.to_string());
        let effects = (!settlement.effects.is_empty()).then(|| settlement.effects.clone());
        let target = lease.target.as_ref().map(|target| target.as_str().to_owned());
        let late = (!settlement.late.is_empty()).then(|| settlement.late.clone());
        let query = query
            .bind(lease.row_location.clone())
            .bind(lease.subscription.clone())
            .bind(lease.lane.cast_signed())
            .bind(lease.epoch)
            .bind(lease.owner.clone())
            .bind(settlement.from.as_str().to_owned())
            .bind(settlement.to.as_str().to_owned())
            .bind(to.frontier)
            .bind(to.snapshot.to_string())
            .bind(to.system)
            .bind(reading(settlement.reading.as_ref())?)
            .bind(self.clock.now())
            .bind(from.frontier + 1)
            .bind(to.frontier)
            .bind(late)
            .bind(settlement.count.cast_signed())
            .bind(witness.map(|witness| witness.number))
            .bind(witness.and_then(|witness| witness.id.parse::<Uuid>().ok()))
            .bind(target)
            .bind(home.system)
            .bind(seen)
            .bind(effects);
        Ok(if writes_deliveries(settlement) { bind_deliveries(query, settlement) } else { query })
    }
}

/// How far a position reaches, for the *processing* state.
pub(crate) fn reading(position: Option<&Position>) -> Result<i64> {
    position.map_or(Ok(0), |position| Ok(LogPosition::parse(position)?.frontier))
}

/// Whether a settle does more than move the lane.
fn writes_deliveries(settlement: &Settlement) -> bool {
    !settlement.deliveries.is_empty() || !settlement.succeeded.is_empty()
}

fn is_open(state: DeliveryState) -> bool {
    matches!(
        state,
        DeliveryState::Waiting | DeliveryState::Running | DeliveryState::Retrying | DeliveryState::Dead
    )
}

fn bind_deliveries<'q>(
    query: Query<'q, Postgres, PgArguments>,
    settlement: &Settlement,
) -> Query<'q, Postgres, PgArguments> {
    let changes = &settlement.deliveries;
    let micros = |wait: std::time::Duration| i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    let failure = |part: fn(&postrider_core::DeliveryFailure) -> &String| -> Vec<Option<String>> {
        let part = |change: &DeliveryChange| change.failure.as_ref().map(|failure| part(failure).clone());
        changes.iter().map(|change| part(change).filter(|part| !part.is_empty())).collect()
    };
    query
        .bind(changes.iter().map(|change| change.id).collect::<Vec<_>>())
        .bind(changes.iter().map(|change| change.event_id).collect::<Vec<_>>())
        .bind(changes.iter().map(|change| change.state.as_str().to_owned()).collect::<Vec<_>>())
        .bind(changes.iter().map(|change| change.attempts.cast_signed()).collect::<Vec<_>>())
        .bind(changes.iter().map(|change| micros(change.retry_in)).collect::<Vec<_>>())
        .bind(failure(|failure| &failure.code))
        .bind(failure(|failure| &failure.message))
        .bind(
            changes.iter().map(|change| change.past.as_deref().map(PastAttempt::encode)).collect::<Vec<_>>(),
        )
        .bind(settlement.succeeded.iter().map(|event| event.id).collect::<Vec<_>>())
        .bind(settlement.succeeded.iter().map(|event| event.event_id).collect::<Vec<_>>())
}
