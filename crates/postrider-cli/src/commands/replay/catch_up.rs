//! Waiting until the lanes of a subscription stand where they stood.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider::asked_to_end;
use postrider::store::SubscriptionInfo;
use tokio::time::Instant;

use super::super::progress::{self, Progress};
use super::super::unknown;
use crate::Failure;
use crate::database::SharedStore;
use crate::output;

const PAUSE: Duration = Duration::from_millis(200);
/// After so long without a holder it is said that there is none.
const UNATTENDED: Duration = Duration::from_secs(5);

/// After so long without a holder nobody is waited for any more.
const NOBODY: Duration = Duration::from_secs(60);

/// What a subscription that does not get on is waiting for: a relay, or time.
pub(crate) fn missing(info: &SubscriptionInfo) -> String {
    let name = &info.subscription.name;
    let holders: std::collections::BTreeSet<&str> =
        info.lanes.iter().filter_map(|lane| lane.owner.as_deref()).collect();
    match holders.into_iter().collect::<Vec<_>>().as_slice() {
        _ if info.paused => {
            format!("It is paused; run `postrider subscriptions resume {name}`")
        }
        [] => format!("No relay holds a lane of it; start one that has a [[subscription]] named {name}"),
        holders => format!(
            "{} holds it and continues; `postrider status {name}` shows the progress",
            holders.join(" and ")
        ),
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
        let (mut total, began) = (0, Instant::now());
        let mut held_at = Instant::now();
        loop {
            let info = unknown::subscription(log.as_ref(), name).await?;
            let left = self.left(&info);
            total = left.max(total);
            if left == 0 {
                progress.end();
                output::note(format!("{name} has caught up after {}", output::age(began.elapsed())));
                return Ok(());
            }
            if info.lanes.iter().any(|lane| lane.owner.is_some()) {
                held_at = Instant::now();
            }
            let step = match held_at.elapsed() < UNATTENDED {
                true => format!("catching up: {name} "),
                false => format!("no relay holds a lane of {name} "),
            };
            let rest =
                format!("{}, up to {} to go", progress::bar(total - left, total), output::number(left));
            progress.show(&step, &rest);
            let alone = held_at.elapsed();
            if began.elapsed() >= patience || alone >= NOBODY {
                progress.end();
                let took = output::age(began.elapsed());
                let (left, what) = (output::count(left, "event"), missing(&info));
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
    use postrider::OffsetDateTime;
    use postrider::store::{LaneInfo, Subscription};

    use super::*;

    #[test]
    fn what_is_left_is_what_the_last_lane_has_left() {
        let lane = |lane: u32, reached: i64| LaneInfo {
            lane,
            reached,
            behind: 0,
            owner: None,
            lease_until: None,
            settled_at: None,
            away: None,
            away_since: None,
        };
        let at = |reached: [i64; 3]| SubscriptionInfo {
            subscription: Subscription::new("mail").lanes(3),
            lanes_next: None,
            paused: false,
            pause: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
            lanes: (0..).zip(reached).map(|(number, reached)| lane(number, reached)).collect(),
        };
        let goal = Goal { subscription: "mail".into(), lanes: (0..3).map(|lane| (lane, 100)).collect() };
        assert_eq!(goal.left(&at([0, 0, 0])), 100, "and not three times as many");
        assert_eq!(goal.left(&at([90, 40, 120])), 60);
        assert_eq!(goal.left(&at([100, 100, 120])), 0);
    }
}
