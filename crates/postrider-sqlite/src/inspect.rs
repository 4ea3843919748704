//! Queries for operators.

use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    ArchiveOptions, Audit, Check, Error, ErrorKind, EventPage, EventQuery, EventRef, EventState, Figures,
    Inspect, LoggedEvent, OffsetDateTime, OpenDelivery, OpenDeliveryQuery, PastAttempts, RelayInfo, Result,
    Search, StateQuery, SubscriptionInfo, Sweep, Sweepable,
};
use postrider_sql::event::Names;
use postrider_sql::figures::MOST;
use postrider_sql::{Columns, inspect, statement, subscription};
use sqlx_sqlite::SqliteRow;

use crate::figures::count;
use crate::store::SqliteStore;
use crate::{archive, checks, figures, relays, row, state, sweep};

#[async_trait]
impl Inspect for SqliteStore {
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>> {
        const OP: &str = "subscriptions";
        let mut conn = self.conn(OP).await?;
        let now = self.now(&mut conn, OP).await?;
        let rows = self.sql.query(statement!("subscriptions.sql")).bind(now).fetch_all(&mut conn, OP).await?;
        subscription::subscriptions(&rows, OP)
    }

    async fn relays(&self) -> Result<Vec<RelayInfo>> {
        relays::relays(self).await
    }

    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        state::states(self, query).await
    }

    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>> {
        Ok(count(self, subscription, None, MOST).await?.figures(subscription))
    }

    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        Ok(count(self, subscription, None, i64::from(most)).await?.figures(subscription))
    }

    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        Ok(count(self, subscription, Some(age), MOST).await?.before())
    }

    async fn unread_since(&self, subscription: &str) -> Result<Option<OffsetDateTime>> {
        figures::unread_since(self, subscription).await
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        const OP: &str = "events";
        let mut conn = self.conn(OP).await?;
        let mut names = Names::default();
        if let Some(event_id) = query.event_id {
            let rows =
                self.sql.query(statement!("event.sql")).bind(event_id).fetch_all(&mut conn, OP).await?;
            let (events, looked, _) = inspect::wanted(query, logged(&rows, &mut names, OP)?);
            return Ok(EventPage { events, looked, reached: None, complete: true });
        }
        let statement = if query.oldest_first {
            statement!("events_oldest.sql")
        } else {
            statement!("events_newest.sql")
        };
        let mut search = Search::new(query);
        while let Some((after, before, rows)) = search.page() {
            let page = self.sql.query(statement).bind(after).bind(before).bind(rows);
            let page = page.fetch_all(&mut conn, OP).await?;
            let (events, looked, last) = inspect::wanted(query, logged(&page, &mut names, OP)?);
            search.take(events, looked, last, rows);
        }
        Ok(search.found())
    }

    async fn open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>> {
        const OP: &str = "open_deliveries";
        let these = if query.retrying {
            "indexed by postrider_delivery_due where state in ('waiting', 'running', 'retrying')"
        } else {
            "indexed by postrider_delivery_dead where state = 'dead'"
        };
        let event_type = query.event_type.as_ref().map(|pattern| pattern.as_str().into());
        let select = self.sql.query(statement!("open_deliveries.sql"));
        let select = inspect::open_deliveries(select, query, these, event_type);
        let mut conn = self.conn(OP).await?;
        let mut names = Names::default();
        let open = |row| inspect::open_delivery(row, row::decoded(row, &mut names, OP)?.event, OP);
        select.fetch_all(&mut conn, OP).await?.iter().map(open).collect()
    }

    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>> {
        const OP: &str = "attempts";
        let look = self.sql.query(statement!("attempts.sql")).bind(event.id).bind(event.event_id);
        let mut conn = self.conn(OP).await?;
        inspect::attempts(&look.fetch_all(&mut conn, OP).await?, OP)
    }

    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        const OP: &str = "audits";
        let audits = self.sql.query(statement!("audits.sql")).bind(inspect::limit(limit, inspect::AUDITS));
        let mut conn = self.conn(OP).await?;
        inspect::audits(&audits.fetch_all(&mut conn, OP).await?, OP)
    }

    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        sweep::sweepable(self, sweep).await
    }

    async fn check_archive(&self, archiving: &ArchiveOptions) -> Result<()> {
        match &archiving.target {
            Some(target) => archive::check(self, target).await,
            None if archiving.by_month => {
                let message = "SQLite has no partitions; leave by_month out";
                Err(Error::new(ErrorKind::Invalid, "archive", message))
            }
            None => Ok(()),
        }
    }

    async fn checks(&self, _now: OffsetDateTime) -> Result<Vec<Check>> {
        checks::checks(self).await
    }
}

/// The events of a page.
fn logged(rows: &[SqliteRow], names: &mut Names, op: &'static str) -> Result<Vec<LoggedEvent>> {
    let logged = |row: &SqliteRow| {
        Ok(LoggedEvent { event: row::decoded(row, names, op)?.event, archived: row.flag("archived", op)? })
    };
    rows.iter().map(logged).collect()
}
