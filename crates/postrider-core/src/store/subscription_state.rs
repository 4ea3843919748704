//! The state of a subscription, in one word.

use std::fmt;
use std::str::FromStr;

use crate::policy::subscription::words;
use crate::{Error, ErrorKind, Figures, OffsetDateTime, OnDead, Order, RelayInfo, Result, SubscriptionInfo};

/// What a subscription is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubscriptionState {
    /// An operator has paused it.
    Paused,
    /// No running relay has it.
    NoRelay,
    /// Its destination is unavailable: events wait and lose no attempts.
    Away,
    /// Events are being delivered.
    Delivering,
    /// All undelivered events have failed and will be retried, or wait for one that will.
    WaitingForRetry,
    /// All undelivered events wait for a dead event, until an operator acts.
    Held,
    /// Nothing is left to deliver.
    Idle,
}

words!(
    SubscriptionState,
    Paused = "paused",
    NoRelay = "no relay",
    Away = "away",
    Delivering = "delivering",
    WaitingForRetry = "waiting for retry",
    Held = "held",
    Idle = "idle"
);

/// An unavailable destination, as the relays report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    /// Since when, by the store's clock.
    pub since: OffsetDateTime,
    /// Why, without secrets.
    pub reason: String,
    /// When it is tried again, by the store's clock; `None` if it is being tried, or if that is unknown.
    pub next_probe: Option<OffsetDateTime>,
}

impl SubscriptionState {
    /// Whether a relay runs the subscription, paused or not: one holds a lane of it, or says so.
    pub fn is_run(info: &SubscriptionInfo, relays: &[RelayInfo]) -> bool {
        let held = info.lanes.iter().any(|lane| lane.owner.is_some());
        held || relays.iter().any(|relay| relay.attends(&info.subscription.name))
    }

    /// Derives the state from the lanes, the figures and the known relays.
    pub fn of(info: &SubscriptionInfo, figures: &[Figures], relays: &[RelayInfo]) -> Self {
        if info.paused {
            return Self::Paused;
        }
        if !Self::is_run(info, relays) {
            return Self::NoRelay;
        }
        if Away::of(info, relays).is_some() {
            return Self::Away;
        }
        let sum = |of: fn(&Figures) -> u64| figures.iter().map(of).sum::<u64>();
        let (pending, waiting, dead) =
            (sum(|stream| stream.pending), sum(|stream| stream.waiting), sum(|stream| stream.dead));
        let failed = sum(|stream| stream.retrying).saturating_sub(waiting);
        let holds = dead > 0 && info.subscription.on_dead == OnDead::Hold;
        // A strict lane reads nothing while something of it is open.
        let stands = info.subscription.order == Order::Strict && (failed > 0 || waiting > 0 || holds);
        if sum(|stream| stream.processing) > 0 || (pending > 0 && !stands) {
            Self::Delivering
        } else if failed > 0 {
            Self::WaitingForRetry
        } else if (waiting > 0 || pending > 0) && holds && sum(|stream| stream.due) == 0 {
            Self::Held
        } else if waiting > 0 || pending > 0 {
            // Given back by a relay that stopped, or in hand: it is due.
            Self::Delivering
        } else {
            Self::Idle
        }
    }
}

impl Away {
    /// Why and since when the destination of a subscription is unavailable, by the earliest report of a lane's holder or a relay; and
    /// when the first relay tries it again.
    pub fn of(info: &SubscriptionInfo, relays: &[RelayInfo]) -> Option<Self> {
        let name = &info.subscription.name;
        let by_lane = info.away().map(|(reason, since)| (since, reason.to_owned()));
        // The report of a relay that was killed stays for a while: it says nothing once another one has delivered.
        let settled = info.lanes.iter().filter_map(|lane| lane.settled_at).max();
        let is_over = |relay: &RelayInfo| {
            let own = |owner: &Option<String>| owner.as_deref() == Some(relay.report.name.as_str());
            let holds = info.lanes.iter().any(|lane| own(&lane.owner));
            let is_newer = |other: &RelayInfo| {
                other.report.name == relay.report.name && other.started_at > relay.seen_at
            };
            settled.is_some_and(|settled| settled > relay.seen_at) && (!holds || relays.iter().any(is_newer))
        };
        let there = relays.iter().filter(|relay| relay.live && !is_over(relay));
        let said = there.filter_map(|relay| Some((relay.seen_at, relay.run(name)?.away.as_ref()?)));
        let said: Vec<_> = said.collect();
        let by_relay = said.iter().map(|(seen, away)| {
            (*seen - time::Duration::seconds_f64(away.seconds.clamp(0.0, 1e9)), away.reason.clone())
        });
        let (since, reason) = by_lane.into_iter().chain(by_relay).min_by_key(|(since, _)| *since)?;
        let probe = |(seen, probe_in): (OffsetDateTime, f64)| {
            seen + time::Duration::seconds_f64(probe_in.clamp(0.0, 1e9))
        };
        let probes = said.iter().filter_map(|(seen, away)| Some((*seen, away.probe_in?)));
        Some(Self { since, reason, next_probe: probes.map(probe).min() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LaneInfo, RelayAway, RelayReport, RelayRun, Subscription, Uuid};

    const AT: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn info() -> SubscriptionInfo {
        let lane = LaneInfo {
            lane: 0,
            reached: 0,
            behind: 0,
            owner: None,
            lease_until: None,
            settled_at: None,
            away: None,
            away_since: None,
        };
        SubscriptionInfo {
            subscription: Subscription::new("mail"),
            lanes_next: None,
            paused: false,
            pause: None,
            created_at: AT,
            lanes: vec![lane],
        }
    }

    fn relay(live: bool) -> RelayInfo {
        let run = RelayRun { subscription: "mail".into(), ..RelayRun::default() };
        let (id, text) = (Uuid::nil(), || "x".to_owned());
        let report =
            RelayReport { id, name: text(), host: text(), process: 1, version: text(), runs: vec![run] };
        RelayInfo { report, started_at: AT, seen_at: AT, live }
    }

    fn figures(pending: u64, retrying: u64, waiting: u64, dead: u64) -> [Figures; 1] {
        [Figures { pending, retrying, waiting, dead, ..Figures::default() }]
    }

    #[test]
    fn an_idle_relay_is_told_from_none() {
        assert_eq!(SubscriptionState::of(&info(), &[], &[relay(true)]), SubscriptionState::Idle);
        assert_eq!(SubscriptionState::of(&info(), &[], &[relay(false)]), SubscriptionState::NoRelay);
        assert_eq!(SubscriptionState::of(&info(), &figures(1, 0, 0, 0), &[]), SubscriptionState::NoRelay);
    }

    #[test]
    fn what_is_left_decides_what_it_waits_for() {
        let of = |info: &SubscriptionInfo, figures: &[Figures]| {
            SubscriptionState::of(info, figures, &[relay(true)])
        };
        assert_eq!(of(&info(), &figures(5, 1, 0, 1)), SubscriptionState::Delivering);
        assert_eq!(of(&info(), &figures(0, 3, 2, 0)), SubscriptionState::WaitingForRetry);
        let mut holding = info();
        holding.subscription = Subscription::new("mail").on_dead(OnDead::Hold);
        assert_eq!(of(&holding, &figures(0, 2, 2, 1)), SubscriptionState::Held);
        assert_eq!(of(&holding, &figures(0, 2, 2, 0)), SubscriptionState::Delivering, "given back, and due");
        let mut some_due = figures(0, 3, 3, 1);
        some_due[0].due = 2;
        assert_eq!(of(&holding, &some_due), SubscriptionState::Delivering, "only one is behind the dead one");
        assert_eq!(
            of(&info(), &figures(0, 2, 2, 1)),
            SubscriptionState::Delivering,
            "behind none that holds"
        );
        assert_eq!(
            of(&info(), &figures(0, 0, 0, 1)),
            SubscriptionState::Idle,
            "a dead one that holds nothing"
        );
        let mut strict = info();
        strict.subscription = Subscription::new("mail").order(Order::Strict).on_dead(OnDead::Hold);
        assert_eq!(of(&strict, &figures(5, 1, 0, 0)), SubscriptionState::WaitingForRetry);
        assert_eq!(of(&strict, &figures(5, 0, 0, 1)), SubscriptionState::Held);
        assert_eq!(of(&strict, &figures(5, 0, 0, 0)), SubscriptionState::Delivering);
    }

    #[test]
    fn a_pause_and_an_outage_come_before_what_is_left() {
        let mut away = relay(true);
        away.report.runs[0].away =
            Some(RelayAway { reason: "refused".into(), seconds: 60.0, probe_in: Some(5.0) });
        assert_eq!(
            SubscriptionState::of(&info(), &figures(5, 0, 0, 0), &[away.clone()]),
            SubscriptionState::Away
        );
        let said = Away::of(&info(), &[away.clone()]).expect("it is away");
        assert_eq!(said.since, AT - time::Duration::seconds(60));
        assert_eq!(said.next_probe, Some(AT + time::Duration::seconds(5)));
        let paused = SubscriptionInfo { paused: true, ..info() };
        assert!(
            SubscriptionState::is_run(&paused, &[away.clone()]) && !SubscriptionState::is_run(&paused, &[])
        );
        assert_eq!(
            SubscriptionState::of(&paused, &figures(5, 0, 0, 0), &[away.clone()]),
            SubscriptionState::Paused
        );
        let mut taken_over = info();
        taken_over.lanes[0].owner = Some("another".into());
        assert!(Away::of(&taken_over, &[away.clone()]).is_some(), "nobody has delivered since");
        taken_over.lanes[0].settled_at = Some(AT + time::Duration::seconds(1));
        assert_eq!(Away::of(&taken_over, &[away.clone()]), None, "another one has delivered since");
        taken_over.lanes[0].owner = Some("x".into());
        assert!(Away::of(&taken_over, &[away.clone()]).is_some(), "its own report holds until the next");
        let mut restarted = relay(true);
        restarted.started_at = AT + time::Duration::seconds(1);
        assert_eq!(Away::of(&taken_over, &[away.clone(), restarted]), None, "a new one of its name has");
        away.live = false;
        assert_eq!(
            SubscriptionState::of(&info(), &[], &[away]),
            SubscriptionState::NoRelay,
            "who is gone says nothing"
        );
    }
}
