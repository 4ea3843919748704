//! Changing the number of lanes: fence, drain to one common place, share out anew.

use postrider_core::{Relane, Result, Subscription};
use time::OffsetDateTime;

use crate::lane::Lane;
use crate::log::{Data, Log};
use crate::subscribe::SubscriptionData;

/// Begins a change of lanes, or takes its next step.
pub(crate) fn relane(log: &Log, subscription: &str, lanes: u32) -> Result<Relane> {
    const OP: &str = "relane";
    Subscription::check_lanes(lanes, OP)?;
    let mut data = log.data();
    let now = log.now();
    want(data.reader(subscription, OP)?, lanes);
    step(&mut data, subscription, now, OP)
}

/// Says how many lanes a subscription is to have; a change that is under way keeps its common place.
pub(crate) fn want(reader: &mut SubscriptionData, lanes: u32) {
    let has = u32::try_from(reader.lanes.len()).unwrap_or(u32::MAX);
    if reader.lanes_next.unwrap_or(has) != lanes {
        reader.lanes_next = Some(lanes);
    }
}

/// Takes as many steps as can be taken now.
pub(crate) fn step(
    data: &mut Data,
    subscription: &str,
    now: OffsetDateTime,
    op: &'static str,
) -> Result<Relane> {
    let end = data.end;
    let reader = data.reader(subscription, op)?;
    let Some(lanes) = reader.lanes_next else { return Ok(Relane::Done) };
    let all_free = reader.lanes.iter().all(|lane| lane.is_free(now));
    let target = match reader.target {
        Some(target) => target,
        None if !all_free => return Ok(Relane::Recalling),
        None => {
            // From the lowest of the lanes' places it would repeat, from the highest it would lose.
            reader.lanes.iter_mut().for_each(Lane::fence);
            *reader.target.insert(end)
        }
    };
    if !all_free || reader.lanes.iter().any(|lane| lane.place != target) {
        return Ok(Relane::Draining);
    }
    // A lease of the old lanes must not fit one of the new: the epochs go on above all of theirs.
    let epoch = reader.lanes.iter().map(|lane| lane.epoch).max().unwrap_or(0) + 1;
    reader.make_lanes(lanes, target, epoch, now);
    (reader.lanes_next, reader.target, reader.wanted) = (None, None, None);
    Ok(Relane::Done)
}
