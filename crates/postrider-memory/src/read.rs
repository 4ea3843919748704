//! Reading what follows a position.

use std::collections::HashMap;
use std::ops::Bound::{Excluded, Included};

use postrider_core::{Batch, ByteBudget, Lease, LeaseStatus, Order, Position, ReadEvent, Result};

use crate::hash::lane_of;
use crate::lane::stands;
use crate::log::Log;
use crate::position::Place;
use crate::subscribe::SubscriptionData;

const OP: &str = "read";

/// Looks at `limit` events at most after `from`, and keeps those of the lane that the subscription wants.
pub(crate) fn read(log: &Log, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
    let start = Place::of(from, OP)?;
    let target = lease.target.as_ref().map(|target| Place::of(target, OP)).transpose()?;
    let last = target.map_or(i64::MAX, |target| target.number).max(start.number);
    let data = log.data();
    let now = log.now();
    stands(&data, lease, start, OP)?;
    let reader = data.readers.get(&lease.subscription);

    let (mut next, mut scanned, mut events) = (start, 0, Vec::new());
    let (mut fill, mut cut) = (ByteBudget::new(lease.bytes), false);
    let following = data.events.range((Excluded(start.number), Included(last)));
    for (number, event) in following.take(limit as usize) {
        let is_wanted = lease.since.is_none_or(|since| event.recorded_at >= since)
            && lease.filter.wants(&event.stream, &event.event_type)
            && lane_of(&event.key(), lease.lanes as usize) == lease.lane as usize;
        if is_wanted && !fill.takes(event.size()) {
            cut = true;
            break;
        }
        next = next.passing(*number, event.id);
        scanned += 1;
        if is_wanted {
            events.push(ReadEvent {
                event: event.clone(),
                late: event.id < start.frontier,
                held: false,
                unreadable: None,
            });
        }
    }
    let more = cut || scanned >= limit;
    if let Some(target) = target
        && !more
        && target.number > next.number
    {
        // Nothing is left before it, so this is where the lane has to arrive, whatever the last event was.
        next = target;
    }
    events.sort_by_key(|read| read.event.id);
    if let Some(reader) = reader {
        hold(reader, lease, &mut events);
    }
    let recalled = reader.is_none_or(|reader| {
        reader.paused.is_some()
            || reader.lease_status(lease, now) == LeaseStatus::Recalled
            || (reader.lanes_next.is_some() && reader.target.is_none())
    });
    let next = if next == start { from.clone() } else { next.position() };
    Ok(Batch { from: from.clone(), next, events, scanned, more, recalled, witness: None })
}

/// Marks the events that an earlier one of their key (or lane) still holds up.
fn hold(reader: &SubscriptionData, lease: &Lease, events: &mut [ReadEvent]) {
    let mut firsts: HashMap<&str, i64> = HashMap::new();
    let holding = reader.deliveries.iter().filter(|(_, delivery)| delivery.holds);
    match lease.order {
        Order::None => return,
        Order::Key => {
            for (id, delivery) in holding {
                firsts.entry(&delivery.key).or_insert(*id);
            }
        }
        Order::Strict => {
            let mut ours = holding.filter(|(_, delivery)| delivery.is_in(lease));
            let Some((first, _)) = ours.next() else { return };
            for read in events {
                read.held = *first < read.event.id;
            }
            return;
        }
    }
    for read in events {
        read.held = firsts.get(&*read.event.key()).is_some_and(|first| *first < read.event.id);
    }
}
