//! Queries for operators.

use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    ArchiveOptions, Audit, AuditEntry, Check, EventPage, EventQuery, EventRef, EventState, Figures, Filter,
    Inspect, LaneInfo, LoggedEvent, OffsetDateTime, OpenDelivery, OpenDeliveryQuery, PastAttempts, Pattern,
    Pause, Paused, RelayInfo, Result, Search, Start, StateQuery, Subscription, SubscriptionInfo, Sweep,
    Sweepable,
};
use sqlx_core::row::Row;
use sqlx_postgres::PgRow;

use crate::error::during;
use crate::row::{self, Names};
use crate::store::PgStore;

/// The log without payloads and headers.
const BARE: &str = "(select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, \
     'null'::json as payload, null::varchar as content_type, null::bytea as content, '{}'::json as headers, occurred_at, recorded_at, \
     max_attempts from {schema}.event) as";

#[async_trait]
impl Inspect for PgStore {
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>> {
        let text = self.sql.text("subscriptions", include_str!("../sql/subscriptions.sql"));
        let rows = text.query().bind(self.clock.now()).fetch_all(&self.pool).await;
        let mut all: Vec<SubscriptionInfo> = Vec::new();
        for row in &rows.map_err(during("subscriptions"))? {
            if all.last().is_none_or(|last| last.subscription.name != row::text(row, 0).unwrap_or_default()) {
                all.push(info(row)?);
            }
            if let Some(last) = all.last_mut() {
                last.lanes.push(lane(row)?);
            }
        }
        Ok(all)
    }

    async fn relays(&self) -> Result<Vec<RelayInfo>> {
        self.known_relays(&self.pool).await
    }

    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        let outcome = self.event_states(query).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.event_states(query).await,
            None => outcome,
        }
    }

    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>> {
        let outcome = self.figures_of(subscription).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.figures_of(subscription).await,
            None => outcome,
        }
    }

    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        let outcome = self.figures_sampled(subscription, most).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.figures_sampled(subscription, most).await,
            None => outcome,
        }
    }

    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        let outcome = self.count_over(subscription, age).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.count_over(subscription, age).await,
            None => outcome,
        }
    }

    async fn unread_since(&self, subscription: &str) -> Result<Option<OffsetDateTime>> {
        self.unread_of(subscription).await
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        let outcome = self.find(query).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.find(query).await,
            None => outcome,
        }
    }

    async fn open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>> {
        let outcome = self.list_open_deliveries(query).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.list_open_deliveries(query).await,
            None => outcome,
        }
    }

    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>> {
        let look = self.sql.text("attempts", include_str!("../sql/attempts.sql"));
        let rows = look.query().bind(event.id).bind(event.event_id).fetch_all(&self.pool).await;
        let of = |row: &PgRow| Ok(PastAttempts::decode(row::text(row, 0)?, row::text(row, 1)?));
        rows.map_err(during("attempts"))?.iter().filter_map(|row| of(row).transpose()).collect()
    }

    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        const AUDITS: &str = "select id, at, who, what, why, subscription, event_id from {schema}.audit \
             order by id desc limit $1";
        let limit = if limit == 0 { 100 } else { limit };
        let rows = self.sql.text("audits", AUDITS).query().bind(i64::from(limit)).fetch_all(&self.pool).await;
        rows.map_err(during("audits"))?.iter().map(audited).collect()
    }

    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        self.count_sweep(sweep).await
    }

    async fn check_archive(&self, archiving: &ArchiveOptions) -> Result<()> {
        match &archiving.target {
            Some(target) => self.check_target(target).await,
            None => Ok(()),
        }
    }

    async fn checks(&self, now: OffsetDateTime) -> Result<Vec<Check>> {
        self.look_for_trouble(now).await
    }
}

impl PgStore {
    async fn find(&self, query: &EventQuery) -> Result<EventPage> {
        match query.event_id {
            Some(event_id) => self.event_by_id(query, event_id).await,
            None => self.walk(query).await,
        }
    }

    async fn event_by_id(&self, query: &EventQuery, event_id: postrider_core::Uuid) -> Result<EventPage> {
        let text = self.sql.text("event", include_str!("../sql/event.sql"));
        let rows = text.query().bind(event_id).fetch_all(&self.pool).await.map_err(during("events"))?;
        let mut names = Names::of(&self.sql);
        let events = rows.iter().map(|row| logged(row, &mut names)).collect::<Result<Vec<_>>>()?;
        let looked = events.len() as u64;
        let events = events.into_iter().filter(|logged| query.wants(&logged.event)).collect();
        Ok(EventPage { events, looked, reached: None, complete: true })
    }

    async fn walk(&self, query: &EventQuery) -> Result<EventPage> {
        let (direction, end) = if query.oldest_first { ("asc", "desc") } else { ("desc", "asc") };
        let text = include_str!("../sql/events.sql").replace("{direction}", direction).replace("{end}", end);
        let text = self.sql.text("events", &text);
        let mut search = Search::new(query);
        let mut names = Names::of(&self.sql);
        while let Some((after, before, rows)) = search.page() {
            let page = text
                .query()
                .bind(after)
                .bind(before)
                .bind(i64::from(rows))
                .bind(query.aggregate_type.clone())
                .bind(query.aggregate_id.clone())
                .bind(query.key.clone())
                .bind(query.event_type.as_ref().map(Pattern::to_like))
                .bind(query.stream.as_ref().map(Pattern::to_like))
                .bind(query.from)
                .bind(query.until)
                .bind(query.correlation_id.clone())
                .bind(query.caused)
                .fetch_all(&self.pool)
                .await
                .map_err(during("events"))?;
            let (mut wanted, mut looked, mut last) = (Vec::new(), 0, None);
            for row in &page {
                if row::opt_bytes(row, 1)?.is_none() {
                    looked = u64::try_from(row::int64(row, 0)?).unwrap_or(0);
                    last = row::opt_i64(row, 7)?.zip(row::opt_time(row, 13)?);
                } else {
                    wanted.push(logged(row, &mut names)?);
                }
            }
            wanted.sort_by_key(|logged| logged.event.id);
            if !query.oldest_first {
                wanted.reverse();
            }
            search.take(wanted, looked, last, rows);
        }
        Ok(search.found())
    }

    async fn list_open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>> {
        let state =
            if query.retrying { "d.state in ('waiting', 'running', 'retrying')" } else { "d.state = 'dead'" };
        let event = if query.bare { BARE } else { "{schema}.event" };
        let text =
            include_str!("../sql/open_deliveries.sql").replace("{state}", state).replace("{event}", event);
        let (id, behind) = query.after.clone().unwrap_or_default();
        let rows = self
            .sql
            .text("open_deliveries", &text)
            .query()
            .bind(query.subscription.clone())
            .bind(query.event_type.as_ref().map(Pattern::to_like))
            .bind(query.error_code.clone())
            .bind(query.from)
            .bind(query.until)
            .bind(id)
            .bind(behind)
            .bind(i64::from(query.most()))
            .fetch_all(&self.pool)
            .await
            .map_err(during("open_deliveries"))?;
        let mut names = Names::of(&self.sql);
        rows.iter()
            .map(|row| {
                Ok(OpenDelivery {
                    event: row::recorded(row, &mut names)?,
                    subscription: row::text(row, 15)?.to_owned(),
                    state: row::text(row, 16)?.parse()?,
                    attempts: row::count(row, 17)?,
                    next_at: row::opt_time(row, 18)?,
                    first_failed_at: row::opt_time(row, 19)?,
                    last_attempt_at: row::opt_time(row, 20)?,
                    error_code: row::opt_text(row, 21)?.map(ToOwned::to_owned),
                    error_message: row::opt_text(row, 22)?.map(ToOwned::to_owned),
                })
            })
            .collect()
    }
}

fn logged(row: &PgRow, names: &mut Names) -> Result<LoggedEvent> {
    Ok(LoggedEvent { event: row::recorded(row, names)?, archived: row::flag(row, 15)? })
}

fn info(row: &PgRow) -> Result<SubscriptionInfo> {
    let patterns = |column: usize| -> Result<Vec<Pattern>> {
        let likes: Vec<String> = row.try_get(column).map_err(during("subscriptions"))?;
        Ok(likes.iter().map(|like| Pattern::from_like(like)).collect())
    };
    let start = match (row::opt_time(row, 7)?, row::int64(row, 8)?) {
        (Some(since), _) => Start::At(since),
        (None, 0) => Start::Beginning,
        (None, _) => Start::Now,
    };
    let is_paused = row::flag(row, 9)?;
    Ok(SubscriptionInfo {
        subscription: Subscription {
            name: row::text(row, 0)?.to_owned(),
            filter: Filter { streams: patterns(1)?, types: patterns(2)? },
            lanes: row::count(row, 5)?,
            start,
            order: row::text(row, 3)?.parse()?,
            on_dead: row::text(row, 4)?.parse()?,
            replay: row::flag(row, 10)?,
        },
        lanes_next: row::opt_i32(row, 6)?.and_then(|lanes| u32::try_from(lanes).ok()),
        paused: is_paused,
        // A program of before, which knows nothing of this, may have let it go on.
        pause: paused(row)?.filter(|_| is_paused),
        created_at: row::timestamp(row, 11)?,
        lanes: Vec::new(),
    })
}

fn paused(row: &PgRow) -> Result<Option<Paused>> {
    let who = row::opt_text(row, 21)?.map(ToOwned::to_owned);
    let why = row::opt_text(row, 22)?.map(ToOwned::to_owned);
    let by = who.map(|who| Pause { who, why });
    Ok(row::opt_time(row, 20)?.zip(by).map(|(since, by)| Paused { by, since }))
}

fn lane(row: &PgRow) -> Result<LaneInfo> {
    Ok(LaneInfo {
        lane: row::count(row, 12)?,
        reached: row::int64(row, 13)?,
        behind: row::opt_i64(row, 14)?.and_then(|behind| u64::try_from(behind).ok()).unwrap_or(0),
        owner: row::opt_text(row, 15)?.map(ToOwned::to_owned),
        lease_until: row::opt_time(row, 16)?,
        settled_at: row::opt_time(row, 17)?,
        away: row::opt_text(row, 18)?.map(ToOwned::to_owned),
        away_since: row::opt_time(row, 19)?,
    })
}

fn audited(row: &PgRow) -> Result<Audit> {
    let owned = |column| row::opt_text(row, column).map(|text| text.map(ToOwned::to_owned));
    Ok(Audit {
        id: row::int64(row, 0)?,
        at: row::timestamp(row, 1)?,
        entry: AuditEntry {
            who: row::text(row, 2)?.to_owned(),
            what: row::text(row, 3)?.to_owned(),
            why: owned(4)?,
            subscription: owned(5)?,
            event_id: row.try_get(6).map_err(during("audits"))?,
        },
    })
}
