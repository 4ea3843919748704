//! The log for people at the controls: what there is, pausing, removing, looking things up, writing down.

use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    ArchiveOptions, Audit, AuditEntry, Check, EventPage, EventQuery, EventRef, EventState, Figures, Filter,
    Inspect, LaneInfo, LoggedEvent, OffsetDateTime, OpenDelivery, OpenDeliveryQuery, PastAttempts, Pattern,
    Pause, Paused, RelayInfo, Result, Search, Start, StateQuery, Subscription, SubscriptionInfo, Sweep,
    Sweepable,
};
use sqlx_core::row::Row;
use sqlx_mysql::MySqlRow;

use crate::clock::{micros, time_of};
use crate::error::failed;
use crate::row::{self, Names, flag, maybe_number, maybe_text, maybe_time, number, small, text};
use crate::sql::statement;
use crate::store::MySqlStore;
use crate::subscribe::patterns_from_json;
use crate::{archive, checks, figures, months, relays, state, sweep, walk};

/// What is wide of an event, and what stands in its place for who does not want it.
const WIDE: &str = "e.payload, e.content_type, e.content, e.headers,";
const BARE: &str = "'null' as payload, null as content_type, null as content, '{}' as headers,";

#[async_trait]
impl Inspect for MySqlStore {
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>> {
        const OP: &str = "subscriptions";
        let mut conn = self.conn(OP).await?;
        self.catch_up(&mut conn, OP).await?;
        let now = self.now(&mut conn, OP).await?;
        let rows = self.sql.query(statement!("subscriptions.sql")).bind(now).fetch_all(&mut conn, OP).await?;
        let mut all: Vec<SubscriptionInfo> = Vec::new();
        for row in &rows {
            let name = text(row, "name", OP)?.into_owned();
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
        self.catch_up(&mut conn, OP).await?;
        let mut names = Names::default();
        if let Some(event_id) = query.event_id {
            let rows =
                self.sql.query(statement!("event.sql")).bind(event_id).fetch_all(&mut conn, OP).await?;
            let mut events = Vec::new();
            for row in &rows {
                let event = row::recorded(row, &mut names, OP)?;
                if query.wants(&event) {
                    events.push(LoggedEvent { event, archived: flag(row, "archived", OP)? });
                }
            }
            let looked = rows.len() as u64;
            return Ok(EventPage { events, looked, reached: None, complete: true });
        }
        let mut search = Search::new(query);
        while let Some((after, before, rows)) = search.page() {
            let page = walk::page(self.sql, &mut conn, query.oldest_first, (after, before), rows, &mut names)
                .await?;
            let (looked, last) =
                (page.len() as u64, page.last().map(|logged| (logged.event.id, logged.event.recorded_at)));
            let events = page.into_iter().filter(|logged| query.wants(&logged.event)).collect();
            search.take(events, looked, last, rows);
        }
        Ok(search.found())
    }

    async fn open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>> {
        const OP: &str = "stuck";
        let these =
            if query.retrying { "d.state in ('waiting', 'running', 'retrying')" } else { "d.state = 'dead'" };
        let (id, behind) = query.after.clone().unwrap_or_default();
        let stuck = self.sql.query(statement!("open_deliveries.sql")).with("{where}", these);
        let stuck = stuck.with("{wide}", if query.bare { BARE } else { WIDE });
        let stuck = stuck.bind(query.subscription.as_deref());
        let stuck = stuck.bind(query.event_type.as_ref().map(Pattern::to_like));
        let stuck = stuck.bind(query.error_code.as_deref());
        let stuck = stuck.bind(query.from.map(micros)).bind(query.until.map(micros));
        let stuck = stuck.bind(id).bind(behind).bind(i64::from(query.most()));
        let mut conn = self.conn(OP).await?;
        let rows = stuck.fetch_all(&mut conn, OP).await?;
        let mut names = Names::default();
        rows.iter().map(|row| stuck_of(row, &mut names)).collect()
    }

    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>> {
        const OP: &str = "attempts";
        let look = self.sql.query(statement!("attempts.sql")).bind(event.id).bind(event.event_id);
        let mut conn = self.conn(OP).await?;
        let rows = look.fetch_all(&mut conn, OP).await?;
        let of = |row: &MySqlRow| Ok(PastAttempts::decode(&text(row, 0, OP)?, &text(row, 1, OP)?));
        rows.iter().filter_map(|row| of(row).transpose()).collect()
    }

    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        const OP: &str = "audits";
        let limit = if limit == 0 { 100 } else { limit };
        let mut conn = self.conn(OP).await?;
        let rows = self.sql.query(statement!("audits.sql")).bind(limit).fetch_all(&mut conn, OP).await?;
        let audited = |row: &MySqlRow| {
            let entry = AuditEntry {
                who: text(row, 2, OP)?.into_owned(),
                what: text(row, 3, OP)?.into_owned(),
                why: maybe_text(row, 4, OP)?,
                subscription: maybe_text(row, 5, OP)?,
                event_id: row.try_get_unchecked(6).map_err(failed(OP))?,
            };
            Ok(Audit { id: number(row, 0, OP)?, at: time_of(number(row, 1, OP)?), entry })
        };
        rows.iter().map(audited).collect()
    }

    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        sweep::sweepable(self, sweep).await
    }

    async fn check_archive(&self, archiving: &ArchiveOptions) -> Result<()> {
        match &archiving.target {
            Some(target) => archive::check(self, target).await,
            None if archiving.by_month => months::check(self).await,
            None => Ok(()),
        }
    }

    async fn checks(&self, now: OffsetDateTime) -> Result<Vec<Check>> {
        checks::checks(self, now).await
    }
}

fn info(row: &MySqlRow, name: String) -> Result<SubscriptionInfo> {
    const OP: &str = "subscriptions";
    let words = |column: &str| text(row, column, OP);
    let lanes_next = maybe_number(row, "lanes_next", OP)?;
    let start_frontier = number(row, "start_frontier", OP)?;
    let start = match (maybe_time(row, "since", OP)?, start_frontier) {
        (Some(since), _) => Start::At(since),
        (None, 0) => Start::Beginning,
        (None, _) => Start::Now,
    };
    let is_paused = flag(row, "paused", OP)?;
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
            replay: flag(row, "replay", OP)?,
        },
        lanes_next: lanes_next.and_then(|lanes| u32::try_from(lanes).ok()),
        paused: is_paused,
        // A program of before, which knows nothing of this, may have let it go on.
        pause: paused(row)?.filter(|_| is_paused),
        created_at: time_of(number(row, "created_at", OP)?),
        lanes: Vec::new(),
    })
}

fn paused(row: &MySqlRow) -> Result<Option<Paused>> {
    const OP: &str = "subscriptions";
    let (who, why) = (maybe_text(row, "paused_by", OP)?, maybe_text(row, "paused_why", OP)?);
    let by = who.map(|who| Pause { who, why });
    Ok(maybe_time(row, "paused_at", OP)?.zip(by).map(|(since, by)| Paused { by, since }))
}

fn lane(row: &MySqlRow) -> Result<LaneInfo> {
    const OP: &str = "subscriptions";
    Ok(LaneInfo {
        lane: small(row, "lane", OP)?,
        reached: number(row, "position", OP)?,
        behind: u64::try_from(number(row, "behind", OP)?).unwrap_or(0),
        owner: maybe_text(row, "owner", OP)?,
        lease_until: maybe_time(row, "lease_until", OP)?,
        settled_at: maybe_time(row, "settled_at", OP)?,
        away: maybe_text(row, "away", OP)?,
        away_since: maybe_time(row, "away_since", OP)?,
    })
}

fn stuck_of(row: &MySqlRow, names: &mut Names) -> Result<OpenDelivery> {
    const OP: &str = "stuck";
    Ok(OpenDelivery {
        event: row::recorded(row, names, OP)?,
        subscription: text(row, 15, OP)?.into_owned(),
        state: text(row, 16, OP)?.parse()?,
        attempts: small(row, "attempts", OP)?,
        next_at: maybe_time(row, "next_at", OP)?,
        first_failed_at: maybe_time(row, "first_failed_at", OP)?,
        last_attempt_at: maybe_time(row, "last_attempt_at", OP)?,
        error_code: maybe_text(row, 21, OP)?,
        error_message: maybe_text(row, 22, OP)?,
    })
}
