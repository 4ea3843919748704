//! `postrider subscriptions lanes`: another number of lanes, while relays run.

use std::time::Duration;

use clap::Args;
use postrider::asked_to_end;
use postrider::store::{Relane, Subscription, SubscriptionInfo};
use tokio::time::Instant;

use super::super::progress::Progress;
use super::super::status::look::{self, SubscriptionStatus};
use super::super::{replay, times, unknown};
use super::tell;
use crate::Failure;
use crate::confirm::Consent;
use crate::database::SharedStore;
use crate::output;

const PAUSE: Duration = Duration::from_millis(200);

/// The flags of `lanes`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Name of the subscription
    name: String,
    /// New number of lanes
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(Subscription::MOST_LANES)))]
    lanes: u32,
    /// Start the change and don't wait for it to finish
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// How long to wait for the change to finish, as in 90s or 10m; it continues afterwards, and the exit code is 1
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = times::ago)]
    wait: Duration,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    consent: Consent,
}

/// Begins the change, and waits for its end.
pub(crate) async fn run(log: &SharedStore, arguments: &Arguments) -> Result<bool, Failure> {
    let Arguments { name, lanes, no_wait, wait, json, consent } = arguments;
    consent.check()?;
    let info = unknown::subscription(log.as_ref(), name).await?;
    let (now, many) = (info.subscription.lanes, output::count(u64::from(*lanes), "lane"));
    if now == *lanes && info.lanes_next.is_none() {
        return tell(*json, name, false, &format!("already has {many}"));
    }
    let question = format!("Change the lanes of {name} from {now} to {lanes}? Its relays pause briefly.");
    if !consent.given(&question)? {
        return Ok(false);
    }
    let mut step = log.relane(name, *lanes).await?;
    consent.audit(log.as_ref(), &format!("lanes {now} to {lanes}"), Some(name), None).await?;
    if *no_wait && step != Relane::Done {
        let message = format!("is changing to {many}; `postrider status` shows the progress");
        return tell(*json, name, true, &message);
    }
    let mut progress = Progress::new();
    let mut end = std::pin::pin!(asked_to_end());
    let began = Instant::now();
    while step != Relane::Done {
        progress.show(
            match step {
                Relane::Recalling => "recalling: relays finish deliveries in flight",
                _ => "draining: a relay reads all lanes up to one position",
            },
            "",
        );
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = &mut end => {
                progress.end();
                return tell(*json, name, true, &format!("is still changing to {many}; stopped waiting"));
            }
        }
        step = log.relane(name, *lanes).await?;
        let info = unknown::subscription(log.as_ref(), name).await?;
        if step != Relane::Done && began.elapsed() >= *wait {
            progress.end();
            let took = output::age(began.elapsed());
            let missing = missing(step, &look::one(log, name).await?);
            let what = format!("has not changed to {many} after {took}: {}. {missing}", state(step, &info));
            return if *json {
                tell(true, name, true, &what).map(|_| false)
            } else {
                Err(format!("{name} {what}").into())
            };
        }
    }
    progress.end();
    tell(*json, name, true, &format!("has {many}"))
}

/// What the change is waiting for: those that have not released their lanes, or what keeps a relay from reading on.
fn missing(step: Relane, status: &SubscriptionStatus) -> String {
    let holders = if step == Relane::Recalling { replay::holders(status) } else { None };
    holders.unwrap_or_else(|| replay::missing(status))
}

/// What keeps the change from being done.
fn state(step: Relane, info: &SubscriptionInfo) -> String {
    if step == Relane::Recalling {
        return "its relays have not released their lanes".to_owned();
    }
    let behind = info.lanes.iter().map(|lane| lane.behind).max().unwrap_or(0);
    // Ids have gaps, and some events are of other lanes, or wanted by nobody.
    format!(
        "its lanes are not at one position yet; up to {} before the end of the log are left to read",
        output::count(behind, "event")
    )
}

#[cfg(test)]
mod tests {
    use postrider::OffsetDateTime;
    use postrider::store::LaneInfo;

    use super::*;

    /// Not that so many events are behind: ids have gaps.
    #[test]
    fn what_is_left_to_read_is_said_as_the_most_that_it_may_be() {
        let lane = |behind| LaneInfo {
            lane: 0,
            reached: 0,
            behind,
            owner: None,
            lease_until: None,
            settled_at: None,
            away: None,
            away_since: None,
        };
        let info = SubscriptionInfo {
            subscription: Subscription::new("mail"),
            lanes_next: Some(4),
            paused: false,
            pause: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
            lanes: vec![lane(1200), lane(7)],
        };
        let said = state(Relane::Draining, &info);
        assert!(said.ends_with("; up to 1,200 events before the end of the log are left to read"), "{said}");
        assert_eq!(state(Relane::Recalling, &info), "its relays have not released their lanes");
    }
}
