//! Subscriptions as the tables keep them: their rows, their filters, their lanes.

use postrider_core::{
    Error, ErrorKind, Filter, LaneInfo, Lease, Order, Pattern, Pause, Paused, Result, Start, Subscription,
    SubscriptionInfo,
};

use crate::clock::micros;
use crate::columns::Columns;
use crate::position::position;

/// A set of lanes to be made.
#[derive(Clone, Copy)]
pub struct Generation {
    /// How many.
    pub lanes: i64,
    /// Where all of them begin.
    pub position: i64,
    /// The epoch that theirs go on from.
    pub epoch: i64,
}

/// Where a subscription begins, as its statement takes it, and the time if it is one.
pub fn start(start: Start) -> (&'static str, Option<i64>) {
    match start {
        Start::Beginning => ("beginning", None),
        Start::Now => ("now", None),
        Start::At(time) => ("at", Some(micros(time))),
    }
}

/// The patterns of a filter, as the tables keep them.
pub fn patterns_to_json(patterns: &[Pattern]) -> String {
    serde_json::Value::from_iter(patterns.iter().map(Pattern::as_str)).to_string()
}

/// The filter of a subscription's row.
pub fn filter(row: &impl Columns, op: &'static str) -> Result<Filter> {
    let patterns = |column: &str| {
        let patterns: Vec<String> = serde_json::from_str(&row.text(column, op)?).map_err(|error| {
            let message = "the filter of the subscription is not a list of patterns";
            Error::new(ErrorKind::Corrupt, op, message).caused_by(error)
        })?;
        Ok(patterns.into_iter().map(Pattern::new).collect())
    };
    Ok(Filter { streams: patterns("streams")?, types: patterns("types")? })
}

/// The lease of a lane that was claimed, from its row and that of its subscription.
pub fn lease(
    subscription: &str,
    owner: &str,
    lane: &impl Columns,
    reader: &impl Columns,
    op: &'static str,
) -> Result<Lease> {
    Ok(Lease {
        subscription: subscription.to_owned(),
        lane: lane.small("lane", op)?,
        lanes: reader.small("lanes", op)?,
        owner: owner.to_owned(),
        epoch: lane.number("lease_epoch", op)?,
        until: lane.time("lease_until", op)?,
        position: position(lane.number("position", op)?),
        claims: lane.small("claims_since_settle", op)?,
        open: reader.flag("open", op)?,
        filter: filter(reader, op)?,
        since: reader.maybe_time("since", op)?,
        order: reader.text("order_policy", op)?.parse::<Order>()?,
        target: reader.maybe_number("target", op)?.map(position),
        bytes: postrider_core::BATCH_BYTES,
        row_location: String::new(),
        away: None,
    })
}

/// All subscriptions, from the rows of their lanes.
pub fn subscriptions(rows: &[impl Columns], op: &'static str) -> Result<Vec<SubscriptionInfo>> {
    let mut all: Vec<SubscriptionInfo> = Vec::new();
    for row in rows {
        let name = row.text("name", op)?;
        if all.last().is_none_or(|last| last.subscription.name != *name) {
            all.push(info(row, name.into_owned(), op)?);
        }
        if let Some(last) = all.last_mut() {
            last.lanes.push(lane(row, op)?);
        }
    }
    Ok(all)
}

fn info(row: &impl Columns, name: String, op: &'static str) -> Result<SubscriptionInfo> {
    let start = match (row.maybe_time("since", op)?, row.number("start_frontier", op)?) {
        (Some(since), _) => Start::At(since),
        (None, 0) => Start::Beginning,
        (None, _) => Start::Now,
    };
    let is_paused = row.flag("paused", op)?;
    Ok(SubscriptionInfo {
        subscription: Subscription {
            name,
            filter: filter(row, op)?,
            lanes: row.small("lanes", op)?,
            start,
            order: row.text("order_policy", op)?.parse()?,
            on_dead: row.text("on_dead", op)?.parse()?,
            replay: row.flag("replay", op)?,
        },
        lanes_next: row.maybe_number("lanes_next", op)?.and_then(|lanes| u32::try_from(lanes).ok()),
        paused: is_paused,
        // A program of before, which knows nothing of this, may have let it go on.
        pause: paused(row, op)?.filter(|_| is_paused),
        created_at: row.time("created_at", op)?,
        lanes: Vec::new(),
    })
}

fn paused(row: &impl Columns, op: &'static str) -> Result<Option<Paused>> {
    let (who, why) = (row.maybe_text("paused_by", op)?, row.maybe_text("paused_why", op)?);
    let by = who.map(|who| Pause { who, why });
    Ok(row.maybe_time("paused_at", op)?.zip(by).map(|(since, by)| Paused { by, since }))
}

fn lane(row: &impl Columns, op: &'static str) -> Result<LaneInfo> {
    Ok(LaneInfo {
        lane: row.small("lane", op)?,
        reached: row.number("position", op)?,
        behind: row.count("behind", op)?,
        owner: row.maybe_text("owner", op)?,
        lease_until: row.maybe_time("lease_until", op)?,
        settled_at: row.maybe_time("settled_at", op)?,
        away: row.maybe_text("away", op)?,
        away_since: row.maybe_time("away_since", op)?,
    })
}

/// How far a change of lanes is.
pub struct LaneChange {
    /// How many lanes there are to be; nothing if no change is under way.
    pub lanes_next: Option<i64>,
    /// The common position, once it is known.
    pub target: Option<i64>,
    /// How many lanes are held.
    pub leased: i64,
    /// How many lanes have not arrived at the common position.
    pub behind: i64,
    /// The highest epoch of the lanes.
    pub epoch: i64,
}

impl LaneChange {
    /// From a row of relane_look.sql.
    pub fn of(row: &impl Columns, op: &'static str) -> Result<Self> {
        Ok(Self {
            lanes_next: row.maybe_number("lanes_next", op)?,
            target: row.maybe_number("target", op)?,
            leased: row.number("leased", op)?,
            behind: row.number("behind", op)?,
            epoch: row.maybe_number("epoch", op)?.unwrap_or(0),
        })
    }

    /// The common position, if every lane has arrived there and nobody holds one.
    pub fn arrived(&self) -> Option<i64> {
        self.target.filter(|_| self.leased == 0 && self.behind == 0)
    }
}
