//! What people see of a log, from the rows of the statements that look.

use std::borrow::Cow;

use postrider_core::{
    Audit, AuditEntry, EventQuery, EventState, LoggedEvent, OffsetDateTime, OpenDelivery, OpenDeliveryQuery,
    PastAttempts, Recorded, RelayInfo, RelayReport, Result,
};

use crate::clock::{micros, time_of};
use crate::columns::Columns;
use crate::statement::{Call, Dialect};

/// How many states are shown unless a query says so.
pub const STATES: u32 = 1_000;
/// How many audits are shown unless somebody says so.
pub const AUDITS: u32 = 100;

/// What is wide of an event, or what stands in its place for who does not want it.
fn wide(query: &OpenDeliveryQuery) -> &'static str {
    if query.bare {
        "'null' as payload, null as content_type, null as content, '{}' as headers,"
    } else {
        "e.payload, e.content_type, e.content, e.headers,"
    }
}

/// The look at deliveries that are not done, by open_deliveries.sql: those of the condition `these`. `event_type` is the pattern of
/// the query as the database takes it.
pub fn open_deliveries<D: Dialect>(
    select: Call<D>,
    query: &OpenDeliveryQuery,
    these: &str,
    event_type: Option<Cow<'_, str>>,
) -> Call<D> {
    let (id, behind) = query.after.clone().unwrap_or_default();
    let select = select.with("{where}", these).with("{wide}", wide(query));
    let select = select.bind(query.subscription.as_deref()).bind(event_type.map(Cow::into_owned));
    let select = select.bind(query.error_code.as_deref());
    let select = select.bind(query.from.map(micros)).bind(query.until.map(micros));
    select.bind(id).bind(behind).bind(query.most())
}

/// A limit, or how much is shown without one.
pub fn limit(limit: u32, otherwise: u32) -> u32 {
    if limit == 0 { otherwise } else { limit }
}

/// The events of a page that are wanted, how many it had, and the last of them.
pub fn wanted(
    query: &EventQuery,
    page: Vec<LoggedEvent>,
) -> (Vec<LoggedEvent>, u64, Option<(i64, OffsetDateTime)>) {
    let last = page.last().map(|logged| (logged.event.id, logged.event.recorded_at));
    let looked = page.len() as u64;
    (page.into_iter().filter(|logged| query.wants(&logged.event)).collect(), looked, last)
}

/// Where an event stands, from a row of states.sql.
pub fn state(row: &impl Columns, op: &'static str) -> Result<EventState> {
    Ok(EventState {
        id: row.number(0, op)?,
        event_id: row.id(1, op)?,
        subscription: row.text(2, op)?.into_owned(),
        state: row.text(3, op)?.parse()?,
        attempts: row.small(4, op)?,
        next_retry_at: row.maybe_time(5, op)?,
        last_attempt_at: row.maybe_time(6, op)?,
        delivered_at: row.maybe_time(7, op)?,
        delivered_by: row.maybe_text(8, op)?,
        lease_owner: row.maybe_text(9, op)?,
        lease_until: row.maybe_time(10, op)?,
        error_code: row.maybe_text(11, op)?,
        error_message: row.maybe_text(12, op)?,
    })
}

/// A delivery that is not done, from a row of open_deliveries.sql, whose first columns are the event.
pub fn open_delivery(row: &impl Columns, event: Recorded, op: &'static str) -> Result<OpenDelivery> {
    Ok(OpenDelivery {
        event,
        subscription: row.text(15, op)?.into_owned(),
        state: row.text(16, op)?.parse()?,
        attempts: row.small("attempts", op)?,
        next_at: row.maybe_time("next_at", op)?,
        first_failed_at: row.maybe_time("first_failed_at", op)?,
        last_attempt_at: row.maybe_time("last_attempt_at", op)?,
        error_code: row.maybe_text(21, op)?,
        error_message: row.maybe_text(22, op)?,
    })
}

/// The attempts that are still known, from the rows of attempts.sql.
pub fn attempts(rows: &[impl Columns], op: &'static str) -> Result<Vec<PastAttempts>> {
    let decoded = rows.iter().map(|row| Ok(PastAttempts::decode(&row.text(0, op)?, &row.text(1, op)?)));
    decoded.filter_map(Result::transpose).collect()
}

/// What operators did, from the rows of audits.sql.
pub fn audits(rows: &[impl Columns], op: &'static str) -> Result<Vec<Audit>> {
    let audited = rows.iter().map(|row| {
        let entry = AuditEntry {
            who: row.text(2, op)?.into_owned(),
            what: row.text(3, op)?.into_owned(),
            why: row.maybe_text(4, op)?,
            subscription: row.maybe_text(5, op)?,
            event_id: row.maybe_id(6, op)?,
        };
        Ok(Audit { id: row.number(0, op)?, at: row.time(1, op)?, entry })
    });
    audited.collect()
}

/// The relays that are known, from the rows of relays.sql.
pub fn relays(rows: &[impl Columns], now: i64, op: &'static str) -> Result<Vec<RelayInfo>> {
    let known = rows.iter().map(|row| {
        let words = |column: &str| row.text(column, op).map(Cow::into_owned);
        let seen_at = row.time("seen_at", op)?;
        Ok(RelayInfo {
            report: RelayReport {
                id: row.id("id", op)?,
                name: words("name")?,
                host: words("host")?,
                process: u32::try_from(row.number("process", op)?).unwrap_or(0),
                version: words("version")?,
                runs: RelayReport::runs_from_json(&words("runs")?),
            },
            started_at: row.time("started_at", op)?,
            seen_at,
            live: RelayInfo::is_live(seen_at, time_of(now)),
        })
    });
    known.collect()
}
