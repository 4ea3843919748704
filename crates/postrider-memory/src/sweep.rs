//! Retention: what leaves the log.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{
    ArchiveOptions, ByteBudget, DeliveryState, Error, ErrorKind, Mask, Recorded, Result, Sweep, Sweepable,
    Swept, month_of,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::clock::earlier;
use crate::log::{self, Data, Log};
use crate::subscribe::SubscriptionData;

/// One round of retention.
pub(crate) fn sweep(log: &Log, sweep: &Sweep) -> Result<Swept> {
    Ok(match sweep {
        Sweep::Archive { older_than, limit, archiving } => {
            if let Some(target) = &archiving.target {
                let message =
                    format!("there is no table {} to archive into: the log is in memory", target.name());
                return Err(Error::new(ErrorKind::Invalid, "sweep", message));
            }
            events(log, *older_than, *limit, Some(&archiving.mask))
        }
        Sweep::Prune { older_than, limit } => events(log, *older_than, *limit, None),
        Sweep::Inbox { older_than, limit } => inbox(log, *older_than, *limit),
        Sweep::Archived { older_than, limit } => archived(log, *older_than, *limit),
    })
}

/// How much a sweep would take.
pub(crate) fn sweepable(log: &Log, sweep: &Sweep) -> Sweepable {
    let data = log.data();
    let cutoff = earlier(log.now(), sweep.older_than());
    let most = Sweepable::MOST as usize;
    let rows = match sweep {
        Sweep::Archive { .. } | Sweep::Prune { .. } => chosen(&data, cutoff, most).len(),
        Sweep::Inbox { .. } => forgettable(&data, cutoff, most).len(),
        Sweep::Archived { .. } => {
            let first = month_of(cutoff);
            data.archive.iter().filter(|event| event.recorded_at < first).take(most).count()
        }
    };
    Sweepable::of(rows as u64)
}

/// The places of what retention may take.
fn chosen(data: &Data, cutoff: OffsetDateTime, most: usize) -> Vec<i64> {
    let Some(horizon) = horizon(data, cutoff) else { return Vec::new() };
    let settled = data.events.range(..=horizon).filter(|(_, event)| !is_needed(data, event, Some(cutoff)));
    settled.map(|(place, _)| *place).take(most).collect()
}

/// Deletes events, or puts them into the archive with a mask.
fn events(log: &Log, older_than: Duration, limit: u32, keep: Option<&Mask>) -> Swept {
    let mut data = log.data();
    let cutoff = earlier(log.now(), older_than);
    let Some(horizon) = horizon(&data, cutoff) else { return Swept::default() };
    let mut chosen = chosen(&data, cutoff, limit as usize);
    let all = chosen.len();
    if keep.is_some_and(|mask| !mask.is_empty()) {
        let mut fill = ByteBudget::new(ArchiveOptions::BYTES);
        let fits = |place: &&i64| data.events.get(place).is_none_or(|event| fill.takes(event.size()));
        chosen.truncate(chosen.iter().take_while(fits).count());
    }
    for place in &chosen {
        let Some(mut event) = data.remove(*place) else { continue };
        for reader in data.readers.values_mut() {
            reader.deliveries.remove(&event.id);
        }
        let before = data.swept;
        data.swept = Some(log::Swept {
            number: before.map_or(*place, |before| before.number.max(*place)),
            id: before.map_or(event.id, |before| before.id.max(event.id)),
            recorded_at: before.map_or(event.recorded_at, |before| before.recorded_at.max(event.recorded_at)),
        });
        if let Some(mask) = keep {
            mask.apply(&mut event);
            data.archive.push(event);
        }
    }
    let first = data.events.keys().next().copied().unwrap_or(horizon);
    for reader in data.readers.values_mut() {
        forget_batches(reader, first, cutoff);
    }
    let swept = Swept::of(chosen.len() as u64, limit);
    Swept { more: swept.more || chosen.len() < all, ..swept }
}

/// Up to which place every lane of every subscription has read, and had settled everything by a time; nothing while there
/// is no subscription.
fn horizon(data: &Data, cutoff: OffsetDateTime) -> Option<i64> {
    let read = data.readers.values().flat_map(|reader| &reader.lanes).map(|lane| lane.place.number);
    read.chain(data.readers.values().map(|reader| settled_by(reader, cutoff))).min()
}

/// Up to which place a subscription had settled everything by a time: the smallest over the lanes that it had then.
fn settled_by(reader: &SubscriptionData, cutoff: OffsetDateTime) -> i64 {
    let last = last_batches(reader, cutoff);
    let Some(latest) = last.values().max() else { return reader.start };
    let lanes = reader.settled[*latest].lanes;
    let of_lane = |lane| last.get(&(lanes, lane)).map_or(0, |last| reader.settled[*last].last);
    (0..lanes).map(of_lane).min().unwrap_or(0)
}

/// The last settled batch of each lane of each number of lanes by a time.
fn last_batches(reader: &SubscriptionData, cutoff: OffsetDateTime) -> HashMap<(usize, usize), usize> {
    let settled = reader.settled.iter().enumerate().filter(|(_, settled)| settled.at <= cutoff);
    settled.map(|(number, settled)| ((settled.lanes, settled.lane), number)).collect()
}

/// Forgets the settled batches of events that are gone, but not those that the horizon is read from.
fn forget_batches(reader: &mut SubscriptionData, first: i64, cutoff: OffsetDateTime) {
    let last = last_batches(reader, cutoff);
    let mut number = 0;
    reader.settled.retain(|settled| {
        let is_last = last.get(&(settled.lanes, settled.lane)) == Some(&number);
        number += 1;
        is_last || settled.last >= first || settled.at > cutoff
    });
}

/// Whether an event is open somewhere, or was still being tried after a time.
fn is_needed(data: &Data, event: &Recorded, cutoff: Option<OffsetDateTime>) -> bool {
    data.readers.values().filter_map(|reader| reader.deliveries.get(&event.id)).any(|delivery| {
        delivery.is_undelivered()
            || delivery.state == DeliveryState::Dead
            || cutoff.is_some_and(|cutoff| delivery.last_attempt_at.is_some_and(|last| last > cutoff))
    })
}

fn archived(log: &Log, older_than: Duration, limit: u32) -> Swept {
    let mut data = log.data();
    let first = month_of(earlier(log.now(), older_than));
    let mut left = limit;
    data.archive.retain(|event| {
        let goes = left > 0 && event.recorded_at < first;
        left -= u32::from(goes);
        !goes
    });
    Swept::of(u64::from(limit - left), limit)
}

/// The marks that may be forgotten, the oldest first.
fn forgettable(data: &Data, cutoff: OffsetDateTime, most: usize) -> Vec<(Arc<str>, Uuid)> {
    let mut old: Vec<_> = data.inbox.iter().filter(|(_, at)| **at <= cutoff).collect();
    old.sort_by_key(|(_, at)| **at);
    old.into_iter()
        .map(|(mark, _)| mark)
        .filter(|(_, event_id)| {
            let event = data.ids.get(event_id).and_then(|id| data.event(*id));
            event.is_none_or(|(place, event)| {
                let lanes = data.readers.values().flat_map(|reader| &reader.lanes);
                lanes.into_iter().all(|lane| lane.place.number >= place) && !is_needed(data, event, None)
            })
        })
        .take(most)
        .cloned()
        .collect()
}

fn inbox(log: &Log, older_than: Duration, limit: u32) -> Swept {
    let mut data = log.data();
    let cutoff = earlier(log.now(), older_than);
    let chosen = forgettable(&data, cutoff, limit as usize);
    for mark in &chosen {
        let Some(at) = data.inbox.remove(mark) else { continue };
        let last = data.forgotten.entry(Arc::clone(&mark.0)).or_insert(at);
        *last = (*last).max(at);
    }
    Swept::of(chosen.len() as u64, limit)
}
