//! Sharing lanes out evenly: who has few and finds none free is heard, and who has many gives one up.

use std::time::Duration;

use time::OffsetDateTime;

use crate::clock::later;
use crate::subscribe::SubscriptionData;

/// How long it is remembered that somebody wants a lane: who does asks more often.
const HEARD: Duration = Duration::from_secs(10);

/// Somebody found no lane free while another holds at least two more.
pub(crate) struct Wanted {
    /// How many lanes who asked holds.
    with: usize,
    until: OffsetDateTime,
}

impl SubscriptionData {
    /// What is wanted now. A wish that lasts longer than it can is void: the clock went back.
    fn wanted(&self, now: OffsetDateTime) -> Option<&Wanted> {
        self.wanted.as_ref().filter(|wanted| wanted.until > now && wanted.until <= later(now, HEARD))
    }

    /// How many lanes somebody holds, and the last of them.
    fn share_of(&self, owner: &str, now: OffsetDateTime) -> (usize, Option<usize>) {
        let holders = self.lanes.iter().map(|lane| lane.holder(now).map(|(holder, _)| holder));
        let own = holders.enumerate().filter(|(_, holder)| *holder == Some(owner));
        own.fold((0, None), |(share, _), (number, _)| (share + 1, Some(number)))
    }

    fn all_are_held(&self, now: OffsetDateTime) -> bool {
        self.lanes.iter().all(|lane| lane.holder(now).is_some())
    }

    /// Whether somebody may claim a lane: not if another one, with fewer, is to get it.
    pub(crate) fn may_claim(&self, owner: &str, now: OffsetDateTime) -> bool {
        self.wanted(now).is_none_or(|wanted| self.share_of(owner, now).0 <= wanted.with)
    }

    /// Whether the holder of a lane is to give it up: one at a time, and only until one is free.
    pub(crate) fn gives_way(&self, owner: &str, lane: usize, now: OffsetDateTime) -> bool {
        let (share, last) = self.share_of(owner, now);
        self.wanted(now).is_some_and(|wanted| share >= wanted.with + 2)
            && last == Some(lane)
            && self.all_are_held(now)
    }

    /// Says that somebody found no lane free, if another one holds at least two more. Who has even fewer goes before.
    pub(crate) fn ask(&mut self, owner: &str, now: OffsetDateTime) {
        let (own, _) = self.share_of(owner, now);
        let holders = self.lanes.iter().filter_map(|lane| lane.holder(now));
        let most = holders.map(|(holder, _)| self.share_of(holder, now).0).max().unwrap_or(0);
        let is_first = self.wanted(now).is_none_or(|wanted| own <= wanted.with);
        if most >= own + 2 && is_first && self.all_are_held(now) {
            self.wanted = Some(Wanted { with: own, until: later(now, HEARD) });
        }
    }
}
