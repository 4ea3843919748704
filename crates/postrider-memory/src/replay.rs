//! Reading again what was read: every lane goes back, and its holders lose it.

use std::ops::Bound::{Excluded, Unbounded};

use postrider_core::{Recorded, Replay, ReplayFrom, ReplayRefusal, Replayed, Result};

use crate::clock::to_micros;
use crate::log::{Data, Log};
use crate::position::Place;
use crate::subscribe::SubscriptionData;

const OP: &str = "replay";

/// Lets a subscription read again. Lanes read by commits, so a lane goes back to before the first commit of an event that is
/// wanted again; what was recorded earlier and committed behind that comes along.
pub(crate) fn replay(log: &Log, replay: &Replay) -> Result<Replayed> {
    let name = &replay.subscription;
    let mut data = log.data();
    let reader = data.subscription(name, OP)?;
    let place = place(&data, reader, replay).map_err(|refusal| refusal.error(name))?;
    let again: Vec<(i64, &Recorded)> = data
        .events
        .range((Excluded(place.number), Unbounded))
        .filter(|(number, event)| reader.wants(**number, event))
        .filter(|(number, event)| reader.lane_of(event).is_some_and(|lane| **number <= lane.place.number))
        .map(|(_, event)| (event.id, event))
        .collect();
    let first_recorded_at = again.iter().map(|(_, event)| event.recorded_at).min();
    let replayed = Replayed { events: again.len() as u64, counted: true, first_recorded_at };
    let forgotten = data.forgotten.get(name.as_str()).copied();
    if let Some(forgotten) = forgotten.filter(|forgotten| {
        !replay.effects_may_repeat && first_recorded_at.is_some_and(|first| first <= *forgotten)
    }) {
        return Err(ReplayRefusal::Forgotten(forgotten).error(name));
    }
    if replay.dry_run {
        return Ok(replayed);
    }
    let ids: Vec<i64> = again.into_iter().map(|(id, _)| id).collect();
    let reader = data.reader(name, OP)?;
    for id in ids {
        reader.deliveries.remove(&id);
    }
    for lane in &mut reader.lanes {
        lane.rewind(place);
    }
    for settled in &mut reader.settled {
        settled.first = settled.first.min(place.number + 1);
        settled.last = settled.last.min(place.number);
    }
    reader.wanted = None;
    log.bell.committed();
    Ok(replayed)
}

/// The place to go back to.
fn place(data: &Data, reader: &SubscriptionData, replay: &Replay) -> Result<Place, ReplayRefusal> {
    if !reader.replay {
        return Err(ReplayRefusal::Forbidden);
    }
    if reader.lanes_next.is_some() {
        return Err(ReplayRefusal::Changing);
    }
    let from_id = match replay.from {
        ReplayFrom::Time(_) => None,
        ReplayFrom::Event(event) => {
            let archived = data.archive.iter().find(|archived| archived.event_id == event);
            let id = data.ids.get(&event).copied().or(archived.map(|archived| archived.id));
            Some(id.ok_or(ReplayRefusal::NoEvent(event))?)
        }
    };
    let again = |event: &Recorded| match (replay.from, from_id) {
        (ReplayFrom::Time(time), _) => event.recorded_at >= to_micros(time),
        (ReplayFrom::Event(_), from) => from.is_some_and(|from| event.id >= from),
    };
    let first = data.events.iter().find(|(_, event)| again(event)).map(|(number, _)| *number);
    let number = first.map_or(data.end.number, |first| first - 1).max(reader.start);
    // Of what retention has taken, the highest place and id, and the latest time.
    if let Some(swept) = data.swept.filter(|swept| swept.number > reader.start) {
        let wanted_again = match (replay.from, from_id) {
            (ReplayFrom::Time(time), _) => swept.recorded_at >= to_micros(time),
            (ReplayFrom::Event(_), from) => from.is_some_and(|from| swept.id >= from),
        };
        if swept.number > number || wanted_again {
            let whole = data.events.range((Excluded(swept.number), Unbounded)).next();
            let whole = whole.map(|(_, event)| event.recorded_at);
            return Err(ReplayRefusal::Gone(swept.recorded_at, whole));
        }
    }
    let frontier = data.events.range(..=number).map(|(_, event)| event.id).max().unwrap_or(0);
    Ok(Place { number, frontier })
}
