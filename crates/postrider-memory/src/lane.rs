//! Lanes and their leases: claim, extend, release.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Lease, LeaseStatus, Position, Result};
use time::OffsetDateTime;

use crate::clock::later;
use crate::log::{Data, Log};
use crate::position::Place;
use crate::relane;
use crate::subscribe::SubscriptionData;

/// How far beyond its length a lease may reach before it is void: the clock went back.
const SLACK: Duration = Duration::from_secs(1);

/// A lane: where it stands and who holds it.
pub(crate) struct Lane {
    pub(crate) place: Place,
    /// The place up to which its holder is reading.
    pub(crate) reading: i64,
    pub(crate) epoch: i64,
    pub(crate) claims: u32,
    owner: Option<String>,
    /// Until when its lease lasts, or since when it is free.
    until: Option<OffsetDateTime>,
    lasts: Duration,
    /// Why its destination is away, in the words of its holder, and since when.
    away: Option<(String, OffsetDateTime)>,
    /// Cloned by the transactions of its holder's handlers: while there is a clone, nobody claims the lane.
    pin: Arc<()>,
}

impl Lane {
    /// A lane that nobody has held; its epochs go on from one.
    pub(crate) fn new(place: Place, epoch: i64) -> Self {
        Self {
            place,
            reading: 0,
            epoch,
            claims: 0,
            owner: None,
            until: None,
            lasts: Duration::ZERO,
            away: None,
            pin: Arc::default(),
        }
    }

    /// Who holds it, and until when.
    pub(crate) fn holder(&self, now: OffsetDateTime) -> Option<(&str, OffsetDateTime)> {
        let (owner, until) = self.owner.as_deref().zip(self.until)?;
        (until > now && until <= later(now, self.lasts.saturating_add(SLACK))).then_some((owner, until))
    }

    /// Why its destination is away, as who holds it now says, and since when.
    pub(crate) fn away(&self, now: OffsetDateTime) -> Option<&(String, OffsetDateTime)> {
        self.away.as_ref().filter(|_| self.holder(now).is_some())
    }

    /// Whether nobody holds it, and no handler of a former holder is still at work in it.
    pub(crate) fn is_free(&self, now: OffsetDateTime) -> bool {
        self.holder(now).is_none() && Arc::strong_count(&self.pin) == 1
    }

    /// Makes every lease of it stale.
    pub(crate) fn fence(&mut self) {
        *self = Self { claims: self.claims, ..Self::new(self.place, self.epoch + 1) };
    }

    /// Sets it back to a place, unless it has not got so far, and makes every lease of it stale. A handler that is still at
    /// work in it keeps the next holder out.
    pub(crate) fn rewind(&mut self, to: Place) {
        let place = if self.place.number > to.number { to } else { self.place };
        *self = Self { pin: Arc::clone(&self.pin), ..Self::new(place, self.epoch + 1) };
    }

    /// Whether a lease is the one that it was last claimed under.
    pub(crate) fn is_held_by(&self, lease: &Lease) -> bool {
        self.epoch == lease.epoch && self.owner.as_deref() == Some(&lease.owner)
    }
}

impl SubscriptionData {
    /// How the holder of a lane stands: whether it is wanted back.
    pub(crate) fn lease_status(&self, lease: &Lease, now: OffsetDateTime) -> LeaseStatus {
        let number = lease.lane as usize;
        let Some(lane) = self.lanes.get(number).filter(|lane| lane.is_held_by(lease)) else {
            return LeaseStatus::Lost;
        };
        let changing = self.lanes_next.is_some() && self.target.is_none_or(|target| target == lane.place);
        if self.paused.is_some() || changing || self.gives_way(&lease.owner, number, now) {
            LeaseStatus::Recalled
        } else {
            LeaseStatus::Held
        }
    }

    /// Whether a lane may be claimed at all: not of a paused subscription, and while lanes change, only those that have not arrived.
    fn is_open_to_claims(&self, lane: &Lane) -> bool {
        self.paused.is_none()
            && (self.lanes_next.is_none() || self.target.is_some_and(|target| target != lane.place))
    }
}

/// Claims one free lane, after taking the next step of a change of lanes that may be under way.
pub(crate) fn claim(log: &Log, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
    const OP: &str = "claim";
    let mut data = log.data();
    let now = log.now();
    relane::step(&mut data, subscription, now, OP)?;
    let reader = data.reader(subscription, OP)?;
    let changing = reader.lanes_next.is_some() || reader.paused.is_some();
    let allowed = changing || reader.may_claim(owner, now);
    let free = reader.lanes.iter().enumerate();
    let free = free.filter(|(_, lane)| allowed && reader.is_open_to_claims(lane) && lane.is_free(now));
    let free = free.min_by_key(|(number, lane)| (lane.until, *number)).map(|(number, _)| number);
    let Some(number) = free else {
        if !changing {
            reader.ask(owner, now);
        }
        return Ok(None);
    };
    reader.wanted = None;
    let lane = &mut reader.lanes[number];
    (lane.owner, lane.until, lane.lasts) = (Some(owner.to_owned()), Some(later(now, lease)), lease);
    (lane.epoch, lane.claims, lane.reading) = (lane.epoch + 1, lane.claims + 1, 0);
    lane.away = None;
    let (epoch, claims, place) = (lane.epoch, lane.claims, lane.place);
    Ok(Some(Lease {
        subscription: subscription.to_owned(),
        lane: u32::try_from(number).unwrap_or(u32::MAX),
        lanes: u32::try_from(reader.lanes.len()).unwrap_or(u32::MAX),
        owner: owner.to_owned(),
        epoch,
        until: later(now, lease),
        position: place.position(),
        claims,
        open: reader.is_open(),
        filter: reader.filter.clone(),
        since: reader.since,
        order: reader.order,
        target: reader.target.map(Place::position),
        bytes: postrider_core::BATCH_BYTES,
        row_location: String::new(),
        away: None,
    }))
}

/// The lane of a lease, if it is still held under it.
pub(crate) fn held<'a>(data: &'a mut Data, lease: &Lease) -> Option<&'a mut Lane> {
    let reader = data.readers.get_mut(&lease.subscription)?;
    reader.lanes.get_mut(usize::try_from(lease.lane).ok()?).filter(|lane| lane.is_held_by(lease))
}

/// Whether the lane of a lease stands where its reader believes it to be. Nobody need hold it: who waits for work looks without a lease.
pub(crate) fn stands(data: &Data, lease: &Lease, from: Place, op: &'static str) -> Result<()> {
    let stands_at = Place::of(&lease.position, op)?;
    let reader = data.readers.get(&lease.subscription);
    let lane = reader.and_then(|reader| reader.lanes.get(lease.lane as usize));
    if lane.is_some_and(|lane| lane.epoch == lease.epoch && (lane.place == stands_at || lane.place == from)) {
        return Ok(());
    }
    Err(Lease::moved(op))
}

/// How the holder of a lease stands after what it did. The lease learns whether anything is open.
pub(crate) fn refresh(data: &Data, lease: &mut Lease, now: OffsetDateTime) -> LeaseStatus {
    let Some(reader) = data.readers.get(&lease.subscription) else { return LeaseStatus::Lost };
    lease.open = reader.is_open();
    reader.lease_status(lease, now)
}

/// Extends a lease.
pub(crate) fn extend(
    log: &Log,
    lease: &mut Lease,
    by: Duration,
    reading: Option<&Position>,
) -> Result<LeaseStatus> {
    const OP: &str = "extend";
    let reading = reading.map(|reading| Place::of(reading, OP)).transpose()?.unwrap_or_default();
    let stands_at = Place::of(&lease.position, OP)?;
    let mut data = log.data();
    let now = log.now();
    let Some(lane) = held(&mut data, lease).filter(|lane| lane.place == stands_at) else {
        return Ok(LeaseStatus::Lost);
    };
    lease.until = later(now, by);
    (lane.until, lane.lasts) = (Some(lease.until), by);
    lane.reading = lane.reading.max(reading.number);
    let since = lane.away.as_ref().map_or(now, |(_, since)| *since);
    lane.away = lease.away_to_keep().map(|reason| (reason, since));
    Ok(refresh(&data, lease, now))
}

/// Gives a lane back. It is free from now on: who was free longest is claimed next.
pub(crate) fn release(log: &Log, lease: &Lease) {
    let mut data = log.data();
    let now = log.now();
    let Some(lane) = held(&mut data, lease) else { return };
    (lane.owner, lane.until, lane.claims, lane.reading) = (None, Some(now), 0, 0);
    lane.away = None;
}

/// Keeps the lane of a lease from being claimed for as long as the pin is kept.
pub(crate) fn pin(log: &Log, lease: &Lease) -> Result<Arc<()>> {
    let mut data = log.data();
    held(&mut data, lease).map(|lane| Arc::clone(&lane.pin)).ok_or_else(|| Lease::lost("begin"))
}
