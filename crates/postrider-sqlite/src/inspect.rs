//! The log for people at the controls: what there is, pausing, removing, looking things up, writing down.

use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    ArchiveOptions, Audit, AuditEntry, Check, Error, ErrorKind, EventPage, EventQuery, EventRef, EventState,
    Figures, Filter, Inspect, LaneInfo, LoggedEvent, OffsetDateTime, OpenDelivery, OpenDeliveryQuery,
    PastAttempts, Pattern, Pause, Paused, RelayInfo, Result, Search, Start, StateQuery, Subscription,
    SubscriptionInfo, Sweep, Sweepable,
};
use sqlx_core::row::Row;
use sqlx_sqlite::SqliteRow;

use crate::clock::{micros, time_of};
use crate::error::failed;
use crate::row::{self, Names, maybe_text};
use crate::sql::statement;
use crate::store::SqliteStore;
use crate::subscribe::patterns_from_json;
use crate::{archive, checks, figures, relays, state, sweep};

/// What is wide of an event, and what stands in its place for who does not want it.
const WIDE: &str = "e.payload, e.content_type, e.content, e.headers,";
const BARE: &str = "'null' as payload, null as content_type, null as content, '{}' as headers,";

#[async_trait]
impl Inspect for SqliteStore {
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>> {
        const OP: &str = "subscriptions";
        let mut conn = self.conn(OP).await?;
        let now = self.now(&mut conn, OP).await?;
        let rows = self.sql.query(statement!("subscriptions.sql")).bind(now).fetch_all(&mut *conn).await;
        let mut all: Vec<SubscriptionInfo> = Vec::new();
        for row in &rows.map_err(failed(OP))? {
            let name: String = row.try_get("name").map_err(failed(OP))?;
            if all.last().is_none_or(|last| last.subscription.name != name) {
                all.push(info(row, name)?);
            }
            if let Some(last) = all.last_mut() {
                last.lanes.push(lane(row)?);
            }
        }
        Ok(all)
    }

    async fn relays(&self) -> Result<Vec<RelayInfo>> {
        relays::relays(self).await
    }

    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        state::states(self, query).await
    }

    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>> {
        figures::figures(self, subscription, figures::MOST).await
    }

    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        figures::figures(self, subscription, i64::from(most)).await
    }

    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        figures::undelivered_over(self, subscription, age).await
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        const OP: &str = "events";
        let mut conn = self.conn(OP).await?;
        let mut names = Names::default();
        if let Some(event_id) = query.event_id {
            let rows = self.sql.query(statement!("event.sql")).bind(event_id).fetch_all(&mut *conn).await;
            let (events, looked, _) = wanted(query, &rows.map_err(failed(OP))?, &mut names)?;
            return Ok(EventPage { events, looked, reached: None, complete: true });
        }
        let statement = if query.oldest_first {
            statement!("events_oldest.sql")
        } else {
            statement!("events_newest.sql")
        };
        let mut search = Search::new(query);
        while let Some((after, before, rows)) = search.page() {
            let page = self.sql.query(statement).bind(after).bind(before).bind(i64::from(rows));
            let page = page.fetch_all(&mut *conn).await.map_err(failed(OP))?;
            let (events, looked, last) = wanted(query, &page, &mut names)?;
            search.take(events, looked, last, rows);
        }
        Ok(search.found())
    }

    async fn open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>> {
        const OP: &str = "stuck";
        let these = if query.retrying {
            "indexed by postrider_delivery_due where state in ('waiting', 'running', 'retrying')"
        } else {
            "indexed by postrider_delivery_dead where state = 'dead'"
        };
        let (id, behind) = query.after.clone().unwrap_or_default();
        let wide = if query.bare { BARE } else { WIDE };
        let stuck =
            self.sql.query_with(statement!("open_deliveries.sql"), &[("{where}", these), ("{wide}", wide)]);
        let stuck = stuck.bind(query.subscription.as_deref());
        let stuck = stuck.bind(query.event_type.as_ref().map(Pattern::as_str));
        let stuck = stuck.bind(query.error_code.as_deref());
        let stuck = stuck.bind(query.from.map(micros)).bind(query.until.map(micros));
        let stuck = stuck.bind(id).bind(behind).bind(i64::from(query.most()));
        let mut conn = self.conn(OP).await?;
        let rows = stuck.fetch_all(&mut *conn).await.map_err(failed(OP))?;
        let mut names = Names::default();
        rows.iter().map(|row| stuck_of(row, &mut names)).collect()
    }

    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>> {
        const OP: &str = "attempts";
        let look = self.sql.query(statement!("attempts.sql")).bind(event.id).bind(event.event_id);
        let mut conn = self.conn(OP).await?;
        let rows = look.fetch_all(&mut *conn).await.map_err(failed(OP))?;
        let of = |row: &SqliteRow| Ok(PastAttempts::decode(&row::text(row, 0, OP)?, &row::text(row, 1, OP)?));
        rows.iter().filter_map(|row| of(row).transpose()).collect()
    }

    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        const OP: &str = "audits";
        let limit = if limit == 0 { 100 } else { limit };
        let mut conn = self.conn(OP).await?;
        let rows =
            self.sql.query(statement!("audits.sql")).bind(i64::from(limit)).fetch_all(&mut *conn).await;
        let audited = |row: &SqliteRow| {
            let entry = AuditEntry {
                who: row::text(row, 2, OP)?.into_owned(),
                what: row::text(row, 3, OP)?.into_owned(),
                why: maybe_text(row, 4, OP)?,
                subscription: maybe_text(row, 5, OP)?,
                event_id: row.try_get(6).map_err(failed(OP))?,
            };
            let at = time_of(row.try_get(1).map_err(failed(OP))?);
            Ok(Audit { id: row.try_get(0).map_err(failed(OP))?, at, entry })
        };
        rows.map_err(failed(OP))?.iter().map(audited).collect()
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

type Page = (Vec<LoggedEvent>, u64, Option<(i64, OffsetDateTime)>);

/// The events of a page that are wanted, how many rows there were, and the last of them.
fn wanted(query: &EventQuery, rows: &[SqliteRow], names: &mut Names) -> Result<Page> {
    const OP: &str = "events";
    let (mut events, mut last) = (Vec::new(), None);
    for row in rows {
        let (event, _) = row::recorded(row, names, OP)?;
        last = Some((event.id, event.recorded_at));
        if query.wants(&event) {
            events.push(LoggedEvent { event, archived: row.try_get("archived").map_err(failed(OP))? });
        }
    }
    Ok((events, rows.len() as u64, last))
}

fn small(row: &SqliteRow, column: &str, op: &'static str) -> Result<u32> {
    let number: i64 = row.try_get(column).map_err(failed(op))?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn maybe_time(row: &SqliteRow, column: &str, op: &'static str) -> Result<Option<OffsetDateTime>> {
    let micros: Option<i64> = row.try_get(column).map_err(failed(op))?;
    Ok(micros.map(time_of))
}

fn info(row: &SqliteRow, name: String) -> Result<SubscriptionInfo> {
    const OP: &str = "subscriptions";
    let words = |column: &str| row.try_get::<String, _>(column).map_err(failed(OP));
    let lanes_next: Option<i64> = row.try_get("lanes_next").map_err(failed(OP))?;
    let start_frontier: i64 = row.try_get("start_frontier").map_err(failed(OP))?;
    let start = match (maybe_time(row, "since", OP)?, start_frontier) {
        (Some(since), _) => Start::At(since),
        (None, 0) => Start::Beginning,
        (None, _) => Start::Now,
    };
    let is_paused: bool = row.try_get("paused").map_err(failed(OP))?;
    Ok(SubscriptionInfo {
        subscription: Subscription {
            name,
            filter: Filter {
                streams: patterns_from_json(&words("streams")?)?,
                types: patterns_from_json(&words("types")?)?,
            },
            lanes: small(row, "lanes", OP)?,
            start,
            order: words("order_policy")?.parse()?,
            on_dead: words("on_dead")?.parse()?,
            replay: row.try_get("replay").map_err(failed(OP))?,
        },
        lanes_next: lanes_next.and_then(|lanes| u32::try_from(lanes).ok()),
        paused: is_paused,
        // A program of before, which knows nothing of this, may have let it go on.
        pause: paused(row)?.filter(|_| is_paused),
        created_at: time_of(row.try_get("created_at").map_err(failed(OP))?),
        lanes: Vec::new(),
    })
}

fn paused(row: &SqliteRow) -> Result<Option<Paused>> {
    const OP: &str = "subscriptions";
    let who: Option<String> = row.try_get("paused_by").map_err(failed(OP))?;
    let why: Option<String> = row.try_get("paused_why").map_err(failed(OP))?;
    let by = who.map(|who| Pause { who, why });
    Ok(maybe_time(row, "paused_at", OP)?.zip(by).map(|(since, by)| Paused { by, since }))
}

fn lane(row: &SqliteRow) -> Result<LaneInfo> {
    const OP: &str = "subscriptions";
    let behind: i64 = row.try_get("behind").map_err(failed(OP))?;
    Ok(LaneInfo {
        lane: small(row, "lane", OP)?,
        reached: row.try_get("position").map_err(failed(OP))?,
        behind: u64::try_from(behind).unwrap_or(0),
        owner: row.try_get("owner").map_err(failed(OP))?,
        lease_until: maybe_time(row, "lease_until", OP)?,
        settled_at: maybe_time(row, "settled_at", OP)?,
        away: row.try_get("away").map_err(failed(OP))?,
        away_since: maybe_time(row, "away_since", OP)?,
    })
}

fn stuck_of(row: &SqliteRow, names: &mut Names) -> Result<OpenDelivery> {
    const OP: &str = "stuck";
    Ok(OpenDelivery {
        event: row::recorded(row, names, OP)?.0,
        subscription: row::text(row, 15, OP)?.into_owned(),
        state: row::text(row, 16, OP)?.parse()?,
        attempts: small(row, "attempts", OP)?,
        next_at: maybe_time(row, "next_at", OP)?,
        first_failed_at: maybe_time(row, "first_failed_at", OP)?,
        last_attempt_at: maybe_time(row, "last_attempt_at", OP)?,
        error_code: maybe_text(row, 21, OP)?,
        error_message: maybe_text(row, 22, OP)?,
    })
}
