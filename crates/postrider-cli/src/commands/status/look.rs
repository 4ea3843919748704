//! One look at the subscriptions: what is counted, and what is estimated because counting would take too long.

use postrider::store::{Figures, LaneInfo, RelayInfo, SubscriptionInfo, SubscriptionState};
use postrider::{OffsetDateTime, OnDead, Order};
use serde::{Serialize, Serializer};

use super::super::dead::hold::Hold;
use super::super::replay::unfinished::{self, Unfinished};
use super::super::unknown;
use crate::Failure;
use crate::database::SharedStore;
use crate::output::Time;

/// Of a longer backlog only so many rows are counted; from what they are, the rest is estimated.
const SAMPLE: u32 = 20_000;

/// How the subscriptions are doing.
#[derive(Serialize)]
pub(crate) struct Status {
    /// When it was looked.
    pub(crate) at: Time,
    /// Each subscription, by name.
    pub(crate) subscriptions: Vec<SubscriptionStatus>,
}

/// How a subscription is doing.
#[derive(Serialize)]
pub(crate) struct SubscriptionStatus {
    /// Its name.
    pub(crate) subscription: String,
    /// What it is doing: one of seven.
    #[serde(serialize_with = "word")]
    pub(crate) state: SubscriptionState,
    /// Not read yet.
    pub(crate) pending: u64,
    /// Whether `pending` is an estimate.
    pub(crate) estimated: bool,
    /// Read by the holder of a lane, not settled yet.
    pub(crate) processing: u64,
    /// Failed and to be tried again, or waiting behind one that is.
    pub(crate) retrying: u64,
    /// Of those, how many have not failed themselves.
    pub(crate) waiting: u64,
    /// When the next of those that failed is tried again.
    pub(crate) next_retry_at: Option<Time>,
    /// Given up, until an operator acts.
    pub(crate) dead: u64,
    /// What they hold up.
    #[serde(skip)]
    pub(crate) hold: Hold,
    /// How long ago the oldest undelivered one was recorded.
    pub(crate) oldest_seconds: f64,
    /// Whether it is paused.
    pub(crate) paused: bool,
    /// Who paused it, when and why.
    pub(crate) pause: Option<Pause>,
    /// Why its destination is away and since when, as the relays say that hold its lanes.
    pub(crate) away: Option<Away>,
    /// Whether a relay has it, paused or not.
    #[serde(skip)]
    pub(crate) run: bool,
    /// The relays that are there and have it.
    pub(crate) relays: Vec<String>,
    /// While none is: the one that disappeared last without stopping, within a day.
    pub(crate) last_relay: Option<Gone>,
    /// The replay that it is paused for: it is under way, or it was cut short.
    pub(crate) paused_for_replay: Option<Unfinished>,
    /// How many lanes it is to have, while they are being changed.
    pub(crate) lanes_next: Option<u32>,
    /// Its lanes.
    pub(crate) lanes: Vec<Lane>,
    /// Its streams; what is pending in them is a part of `pending`, and estimated where that is.
    pub(crate) streams: Vec<Stream>,
}

/// A destination that is away.
#[derive(Serialize)]
pub(crate) struct Away {
    /// Since when.
    pub(crate) since: Time,
    /// Why.
    pub(crate) reason: String,
    /// When it is asked again.
    pub(crate) next_probe: Option<Time>,
}

/// Who paused a subscription.
#[derive(Serialize)]
pub(crate) struct Pause {
    /// Who.
    pub(crate) who: String,
    /// Why.
    pub(crate) why: Option<String>,
    /// Since when.
    pub(crate) since: Time,
}

/// A relay that disappeared: one that stops is forgotten at once.
#[derive(Serialize)]
pub(crate) struct Gone {
    /// Its name.
    pub(crate) name: String,
    /// Its machine.
    pub(crate) host: String,
    /// When it was last seen.
    pub(crate) seen_at: Time,
}

/// A condition for programs: one word.
pub(crate) fn word<S: Serializer>(condition: &SubscriptionState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&condition.as_str().replace(' ', "_"))
}

/// A lane.
#[derive(Serialize)]
pub(crate) struct Lane {
    /// Its number.
    pub(crate) lane: u32,
    /// Who holds it.
    pub(crate) owner: Option<String>,
    /// Until when.
    pub(crate) lease_until: Option<Time>,
    /// When it was last settled.
    pub(crate) settled_at: Option<Time>,
    /// The highest id that it has settled.
    pub(crate) reached: i64,
    /// How many ids the end of the log is ahead.
    pub(crate) behind: u64,
    /// Why its destination is away and since when, as its holder says.
    pub(crate) away: Option<Away>,
}

/// A stream of a subscription.
#[derive(Serialize)]
pub(crate) struct Stream {
    /// Its name.
    pub(crate) stream: String,
    /// As in [`SubscriptionStatus`].
    pub(crate) pending: u64,
    /// As in [`SubscriptionStatus`].
    pub(crate) processing: u64,
    /// As in [`SubscriptionStatus`].
    pub(crate) retrying: u64,
    /// As in [`SubscriptionStatus`].
    pub(crate) dead: u64,
    /// As in [`SubscriptionStatus`].
    pub(crate) oldest_seconds: f64,
}

/// Looks at all subscriptions, or at one.
pub(crate) async fn look(log: &SharedStore, only: Option<&str>) -> Result<Status, Failure> {
    let mut infos = log.subscriptions().await?;
    infos.retain(|info| only.is_none_or(|only| info.subscription.name == only));
    let audits = unfinished::audits(log.as_ref(), &infos).await?;
    let relays = log.relays().await?;
    let mut subscriptions = Vec::new();
    for info in infos {
        let replay = Unfinished::of(&info, &audits);
        match log.figures_up_to(&info.subscription.name, SAMPLE).await {
            Ok(figures) => subscriptions.push(SubscriptionStatus::of(info, replay, &figures, &relays)),
            // It was removed meanwhile.
            Err(error) if error.kind() == postrider::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Status { at: Time(OffsetDateTime::now_utc()), subscriptions })
}

/// Looks at one subscription, which must be there.
pub(crate) async fn one(log: &SharedStore, name: &str) -> Result<SubscriptionStatus, Failure> {
    if let Some(status) = look(log, Some(name)).await?.subscriptions.pop() {
        return Ok(status);
    }
    let unknown = unknown::subscription(log.as_ref(), name).await.err();
    Err(unknown.unwrap_or_else(|| format!("{name} was removed meanwhile").into()))
}

/// A strict lane reads nothing behind a dead event that holds.
fn stands_at_a_dead_event(info: &SubscriptionInfo, figures: &[Figures]) -> bool {
    let subscription = &info.subscription;
    subscription.order == Order::Strict
        && subscription.on_dead == OnDead::Hold
        && figures.iter().any(|figures| figures.dead > 0)
}

/// What a subscription is doing, of which a sample was looked at.
fn state(
    info: &SubscriptionInfo,
    figures: &[Figures],
    relays: &[RelayInfo],
    estimated: bool,
) -> SubscriptionState {
    match SubscriptionState::of(info, figures, relays) {
        // Of what follows the sample nothing is known, but that somebody has to read it.
        SubscriptionState::Idle if estimated && stands_at_a_dead_event(info, figures) => {
            SubscriptionState::Held
        }
        SubscriptionState::Idle if estimated => SubscriptionState::Delivering,
        state => state,
    }
}

impl Away {
    /// Why the destination of a subscription is away, if it is.
    fn of(info: &SubscriptionInfo, relays: &[RelayInfo]) -> Option<Self> {
        let away = postrider::store::Away::of(info, relays)?;
        let next_probe = away.next_probe.map(Time);
        Some(Self { since: Time(away.since), reason: away.reason, next_probe })
    }
}

impl SubscriptionStatus {
    fn of(
        info: SubscriptionInfo,
        replay: Option<Unfinished>,
        figures: &[Figures],
        relays: &[RelayInfo],
    ) -> Self {
        let behind = info.lanes.iter().map(|lane| lane.behind).max().unwrap_or(0);
        let estimated = behind > u64::from(SAMPLE);
        let state = state(&info, figures, relays, estimated);
        let hold = Hold::of(&info.subscription, figures, state == SubscriptionState::Away);
        let waiting = figures.iter().map(|figures| figures.waiting).sum();
        let retry_in = figures.iter().filter_map(|figures| figures.retry_in).reduce(f64::min);
        let now = OffsetDateTime::now_utc();
        let next_retry_at =
            retry_in.map(|seconds| Time(now + time::Duration::seconds_f64(seconds.clamp(0.0, 1e9))));
        let run = SubscriptionState::is_run(&info, relays);
        let (there, last_relay) = relays_of(&info.subscription.name, relays);
        let sum = |of: fn(&Stream) -> u64, streams: &[Stream]| streams.iter().map(of).sum::<u64>();
        let whole = |pending: u64| if estimated { scaled(pending, behind) } else { pending };
        let streams: Vec<Stream> =
            figures.iter().map(|figures| Stream::of(figures, whole(figures.pending))).collect();
        let away = Away::of(&info, relays);
        let pause = info.pause.map(|paused| Pause {
            who: paused.by.who,
            why: paused.by.why,
            since: Time(paused.since),
        });
        Self {
            subscription: info.subscription.name,
            state,
            pending: sum(|stream| stream.pending, &streams),
            estimated,
            processing: sum(|stream| stream.processing, &streams),
            retrying: sum(|stream| stream.retrying, &streams),
            waiting,
            next_retry_at,
            dead: sum(|stream| stream.dead, &streams),
            hold,
            oldest_seconds: streams.iter().map(|stream| stream.oldest_seconds).fold(0.0, f64::max),
            paused: info.paused,
            pause,
            away,
            run,
            relays: there,
            last_relay,
            paused_for_replay: replay,
            lanes_next: info.lanes_next,
            lanes: info.lanes.into_iter().map(Lane::of).collect(),
            streams,
        }
    }
}

/// The relays that have a subscription; and the one that disappeared last, where none of them lives.
fn relays_of(name: &str, relays: &[RelayInfo]) -> (Vec<String>, Option<Gone>) {
    let its = |relay: &&RelayInfo| relay.run(name).is_some();
    let there = relays.iter().filter(its).filter(|relay| relay.live);
    let there: Vec<String> = there.map(|relay| relay.report.name.clone()).collect();
    let last_relay = relays.iter().filter(its).max_by_key(|relay| relay.seen_at);
    let last_relay = last_relay.filter(|_| there.is_empty()).map(|relay| Gone {
        name: relay.report.name.clone(),
        host: relay.report.host.clone(),
        seen_at: Time(relay.seen_at),
    });
    (there, last_relay)
}

impl Stream {
    fn of(figures: &Figures, pending: u64) -> Self {
        Self {
            stream: figures.stream.clone(),
            pending,
            processing: figures.processing,
            retrying: figures.retrying,
            dead: figures.dead,
            oldest_seconds: figures.oldest_seconds,
        }
    }
}

/// What the whole backlog has, if it is like the part that was counted.
fn scaled(counted: u64, behind: u64) -> u64 {
    let whole = u128::from(counted) * u128::from(behind) / u128::from(SAMPLE);
    u64::try_from(whole).unwrap_or(u64::MAX)
}

impl Lane {
    fn of(lane: LaneInfo) -> Self {
        let away = lane.away.zip(lane.away_since);
        Self {
            lane: lane.lane,
            owner: lane.owner,
            lease_until: lane.lease_until.map(Time),
            settled_at: lane.settled_at.map(Time),
            reached: lane.reached,
            behind: lane.behind,
            away: away.map(|(reason, since)| Away { since: Time(since), reason, next_probe: None }),
        }
    }
}

#[cfg(test)]
mod tests {
    use postrider::Uuid;
    use postrider::store::{RelayReport, RelayRun, Subscription};

    use super::*;

    fn behind(behind: u64) -> SubscriptionInfo {
        let lane = LaneInfo {
            lane: 0,
            reached: 0,
            behind,
            owner: None,
            lease_until: None,
            settled_at: None,
            away: None,
            away_since: None,
        };
        SubscriptionInfo {
            subscription: Subscription::new("mail").types(["Rare"]),
            lanes_next: None,
            paused: false,
            pause: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
            lanes: vec![lane],
        }
    }

    #[test]
    fn who_has_a_backlog_that_was_not_looked_at_as_a_whole_is_not_idle() {
        let run = RelayRun { subscription: "mail".into(), ..RelayRun::default() };
        let (id, text) = (Uuid::nil(), || "x".to_owned());
        let report =
            RelayReport { id, name: text(), host: text(), process: 1, version: text(), runs: vec![run] };
        let at = OffsetDateTime::UNIX_EPOCH;
        let relays = [RelayInfo { report, started_at: at, seen_at: at, live: true }];
        let state = |far: u64, relays: &[RelayInfo]| {
            let status = SubscriptionStatus::of(behind(far), None, &[], relays);
            (status.state, status.pending, status.estimated)
        };
        let most = u64::from(SAMPLE);
        assert_eq!(state(0, &relays), (SubscriptionState::Idle, 0, false));
        assert_eq!(state(most, &relays), (SubscriptionState::Idle, 0, false), "all of it was looked at");
        assert_eq!(state(most + 1, &relays), (SubscriptionState::Delivering, 0, true));
        assert_eq!(state(most + 1, &[]), (SubscriptionState::NoRelay, 0, true));
    }
}
