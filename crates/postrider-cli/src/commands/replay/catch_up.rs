//! Waiting until the lanes of a subscription stand where they stood.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postrider::store::{RelayInfo, SubscriptionInfo, SubscriptionState};
use postrider::{OffsetDateTime, asked_to_end};
use tokio::time::Instant;

use super::super::progress::{self, Progress};
use super::super::status::look::{self, SubscriptionStatus};
use super::super::status::soon;
use super::super::unknown;
use crate::Failure;
use crate::database::SharedStore;
use crate::output;

const PAUSE: Duration = Duration::from_millis(200);
/// After so long without a relay it is said that there is none, and without a holder why there is none.
const UNATTENDED: Duration = Duration::from_secs(5);

/// After so long without a relay nobody is waited for any more.
const NOBODY: Duration = Duration::from_secs(60);

/// What a subscription that does not get on is waiting for: a relay, a person, its destination, or time.
pub(crate) fn missing(status: &SubscriptionStatus) -> String {
    let (name, now) = (&status.subscription, OffsetDateTime::now_utc());
    let quoted = output::quoted(name);
    match status.state {
        SubscriptionState::Paused => {
            format!("It is paused; run `postrider subscriptions resume {quoted}`")
        }
        SubscriptionState::NoRelay => {
            format!("No relay runs it; start one that has a [[subscription]] named {name}")
        }
        SubscriptionState::Held => {
            let what = status.hold.sentence();
            let what = what.map(|what| format!(": {what}")).unwrap_or_default();
            format!("It is held{what}; see `postrider dead list --subscription {quoted}`")
        }
        SubscriptionState::Away => {
            let why = status
                .away
                .as_ref()
                .map(|away| format!(" for {}: {}", output::since(away.since.0, now), away.reason));
            let why = why.unwrap_or_default();
            format!("Its events wait, because its destination has been unavailable{why}")
        }
        SubscriptionState::WaitingForRetry => {
            let when = status.next_retry_at.as_ref().map_or_else(|| "now".to_owned(), |at| soon(at.0, now));
            format!(
                "It waits for a retry, and the next one is {when}; see `postrider events --subscription {quoted} --state retrying`"
            )
        }
        SubscriptionState::Delivering | SubscriptionState::Idle => {
            holders(status).unwrap_or_else(|| going_on(&status.relays, "has", name))
        }
    }
}

/// Who holds its lanes, if anybody does.
pub(crate) fn holders(status: &SubscriptionStatus) -> Option<String> {
    let owners = status.lanes.iter().filter_map(|lane| lane.owner.clone());
    let owners: Vec<String> = owners.collect::<BTreeSet<_>>().into_iter().collect();
    (!owners.is_empty()).then(|| going_on(&owners, "holds", &status.subscription))
}

fn going_on(relays: &[String], does: &str, name: &str) -> String {
    let (who, quoted) = (relays.join(" and "), output::quoted(name));
    format!("{who} {does} it and continues; `postrider status {quoted}` shows the progress")
}

/// How long somebody has waited, and for how long nobody was there to wait for.
struct Watch {
    began: Instant,
    /// When a relay ran the subscription.
    run_at: Instant,
    /// When a relay held a lane of it.
    held_at: Instant,
}

impl Watch {
    fn new(now: Instant) -> Self {
        Self { began: now, run_at: now, held_at: now }
    }

    /// A relay that has it need not hold a lane: it gives back one that waits for a retry or for a person.
    fn look(&mut self, info: &SubscriptionInfo, relays: &[RelayInfo], now: Instant) {
        if SubscriptionState::is_run(info, relays) {
            self.run_at = now;
        }
        if info.lanes.iter().any(|lane| lane.owner.is_some()) {
            self.held_at = now;
        }
    }

    fn is_unattended(&self, now: Instant) -> bool {
        now - self.run_at >= UNATTENDED
    }

    /// Whether a relay is there and has held no lane for a while.
    fn is_at_rest(&self, now: Instant) -> bool {
        now - self.held_at >= UNATTENDED && !self.is_unattended(now)
    }

    fn is_over(&self, patience: Duration, now: Instant) -> bool {
        now - self.began >= patience || now - self.run_at >= NOBODY
    }
}

/// Where the lanes of a subscription are to stand.
pub(crate) struct Goal {
    /// The subscription.
    pub(crate) subscription: String,
    lanes: BTreeMap<u32, i64>,
}

impl Goal {
    /// Where they stand now.
    pub(crate) async fn as_it_stands(log: &SharedStore, name: &str) -> Result<Self, Failure> {
        let info = unknown::subscription(log.as_ref(), name).await?;
        let lanes = info.lanes.iter().map(|lane| (lane.lane, lane.reached));
        Ok(Self { subscription: name.to_owned(), lanes: lanes.collect() })
    }

    /// The end of the log as it is now.
    pub(crate) async fn end_of_log(log: &SharedStore, name: &str) -> Result<Self, Failure> {
        let info = unknown::subscription(log.as_ref(), name).await?;
        let end = |reached: i64, behind: u64| reached.saturating_add_unsigned(behind);
        let lanes = info.lanes.iter().map(|lane| (lane.lane, end(lane.reached, lane.behind)));
        Ok(Self { subscription: name.to_owned(), lanes: lanes.collect() })
    }

    /// How many ids are left, and so no fewer than events: ids have gaps, and a lane passes over the events of the others and over those
    /// that nobody wants. It is what the last lane has left.
    fn left(&self, info: &SubscriptionInfo) -> u64 {
        let last = self.lanes.values().copied().max().unwrap_or(0);
        let goal = |lane: u32| self.lanes.get(&lane).copied().unwrap_or(last);
        let left = info.lanes.iter().map(|lane| goal(lane.lane).saturating_sub(lane.reached).max(0));
        left.max().unwrap_or(0).unsigned_abs()
    }

    /// Waits until they are there, or somebody has seen enough. That it takes longer is an error that says what is missing.
    pub(crate) async fn wait(&self, log: &SharedStore, patience: Duration) -> Result<(), Failure> {
        let name = &self.subscription;
        let mut asked = std::pin::pin!(asked_to_end());
        let mut progress = Progress::new();
        let (mut total, mut told) = (0, false);
        let mut watch = Watch::new(Instant::now());
        loop {
            let info = unknown::subscription(log.as_ref(), name).await?;
            let left = self.left(&info);
            total = left.max(total);
            if left == 0 {
                progress.end();
                output::note(format!("{name} has caught up after {}", output::age(watch.began.elapsed())));
                return Ok(());
            }
            let is_held = info.lanes.iter().any(|lane| lane.owner.is_some());
            let relays = if is_held { Vec::new() } else { log.relays().await? };
            watch.look(&info, &relays, Instant::now());
            let now = Instant::now();
            if watch.is_at_rest(now) && !std::mem::replace(&mut told, true) {
                progress.end();
                output::note(format!("{name} waits. {}", missing(&look::one(log, name).await?)));
            }
            let step = match watch.is_unattended(now) {
                true => format!("no relay runs {name} "),
                false => format!("catching up: {name} "),
            };
            let rest =
                format!("{}, up to {} to go", progress::bar(total - left, total), output::number(left));
            progress.show(&step, &rest);
            if watch.is_over(patience, now) {
                progress.end();
                let took = output::age(watch.began.elapsed());
                let what = missing(&look::one(log, name).await?);
                let left = output::count(left, "event");
                return Err(
                    format!("{name} has not caught up after {took}: up to {left} to go. {what}").into()
                );
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = &mut asked => {
                    progress.end();
                    output::note(format!("stopped waiting; {name} continues"));
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use postrider::Uuid;
    use postrider::store::{LaneInfo, RelayReport, RelayRun, Subscription};

    use super::*;

    fn lane(lane: u32, reached: i64) -> LaneInfo {
        LaneInfo {
            lane,
            reached,
            behind: 0,
            owner: None,
            lease_until: None,
            settled_at: None,
            away: None,
            away_since: None,
        }
    }

    fn at(reached: [i64; 3]) -> SubscriptionInfo {
        SubscriptionInfo {
            subscription: Subscription::new("mail").lanes(3),
            lanes_next: None,
            paused: false,
            pause: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
            lanes: (0..).zip(reached).map(|(number, reached)| lane(number, reached)).collect(),
        }
    }

    #[test]
    fn what_is_left_is_what_the_last_lane_has_left() {
        let goal = Goal { subscription: "mail".into(), lanes: (0..3).map(|lane| (lane, 100)).collect() };
        assert_eq!(goal.left(&at([0, 0, 0])), 100, "and not three times as many");
        assert_eq!(goal.left(&at([90, 40, 120])), 60);
        assert_eq!(goal.left(&at([100, 100, 120])), 0);
    }

    #[test]
    fn a_relay_that_has_a_subscription_is_waited_for_though_it_holds_no_lane() {
        let run = RelayRun { subscription: "mail".into(), ..RelayRun::default() };
        let text = || "x".to_owned();
        let report = RelayReport {
            id: Uuid::nil(),
            name: text(),
            host: text(),
            process: 1,
            version: text(),
            runs: vec![run],
        };
        let at_some_time = OffsetDateTime::UNIX_EPOCH;
        let relay = RelayInfo { report, started_at: at_some_time, seen_at: at_some_time, live: true };
        let (begun, long) = (Instant::now(), Duration::from_secs(600));
        let after = |seconds: u64| begun + Duration::from_secs(seconds);
        let info = at([0, 0, 0]);

        let mut alone = Watch::new(begun);
        alone.look(&info, &[], after(59));
        assert!(alone.is_unattended(after(59)) && !alone.is_at_rest(after(59)));
        assert!(!alone.is_over(long, after(59)) && alone.is_over(long, after(60)), "nobody is there");

        let mut run = Watch::new(begun);
        run.look(&info, std::slice::from_ref(&relay), after(59));
        assert!(run.is_at_rest(after(60)) && !run.is_over(long, after(60)), "a relay is there");
        assert!(run.is_over(long, after(600)), "nobody waits longer than was asked");

        let mut held = info.clone();
        held.lanes[0].owner = Some("x".into());
        let mut busy = Watch::new(begun);
        busy.look(&held, &[], after(59));
        assert!(!busy.is_at_rest(after(60)) && !busy.is_over(long, after(60)));
    }
}
