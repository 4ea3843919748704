//! What a relay reports about itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::delivery::past_attempt::ascii;
use crate::{Error, ErrorKind, Limits, Result};

/// What a relay reports about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayReport {
    /// A new id at every start, which tells two relays with the same name apart.
    pub id: Uuid,
    /// Its name: the owner of its leases.
    pub name: String,
    /// The machine that it runs on.
    pub host: String,
    /// Its process.
    pub process: u32,
    /// The version of the program.
    pub version: String,
    /// Its subscriptions.
    pub runs: Vec<RelayRun>,
}

/// A subscription as one relay runs it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayRun {
    /// The subscription.
    pub subscription: String,
    /// The lanes that it works on, or watches while they are idle.
    #[serde(default)]
    pub lanes: Vec<u32>,
    /// The settings that all relays should have in common. No secrets.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Set while its destination is unavailable.
    #[serde(default)]
    pub away: Option<RelayAway>,
}

impl RelayRun {
    /// The names of the settings that are not the same in another relay's run of the subscription, or that only one of them has.
    pub fn differing<'r>(&'r self, other: &'r Self) -> Vec<&'r str> {
        let names: BTreeSet<&str> =
            self.settings.keys().chain(other.settings.keys()).map(String::as_str).collect();
        names.into_iter().filter(|name| self.settings.get(*name) != other.settings.get(*name)).collect()
    }
}

/// An unavailable destination, as a relay reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayAway {
    /// Why, without secrets.
    pub reason: String,
    /// For how many seconds, at the time of the report.
    pub seconds: f64,
    /// Seconds from the report to the next attempt; `None` during an attempt.
    #[serde(default)]
    pub probe_in: Option<f64>,
}

/// A relay, and when it last reported.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayInfo {
    /// Its last report.
    pub report: RelayReport,
    /// When it first reported, by the store's clock.
    pub started_at: OffsetDateTime,
    /// When it last reported, by the store's clock.
    pub seen_at: OffsetDateTime,
    /// Whether it reported less than [`GONE_AFTER`](Self::GONE_AFTER) ago.
    pub live: bool,
}

impl RelayInfo {
    /// How often a relay reports when nothing changes.
    pub const EVERY: Duration = Duration::from_secs(20);
    /// A relay that has not reported for this long counts as gone: it has missed three reports.
    pub const GONE_AFTER: Duration = Duration::from_secs(60);
    /// How long a relay that disappeared is listed.
    pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

    /// Whether it reported recently, by the store's clock. A clock that went back makes no relay look alive.
    pub fn is_live(seen_at: OffsetDateTime, now: OffsetDateTime) -> bool {
        (now - seen_at).unsigned_abs() < Self::GONE_AFTER
    }

    /// Whether it disappeared so long ago that it is listed no more, by the store's clock. One that was seen so far in the future disappeared
    /// before the clock was set back.
    pub fn is_forgotten(seen_at: OffsetDateTime, now: OffsetDateTime) -> bool {
        (now - seen_at).unsigned_abs() > Self::FORGOTTEN_AFTER
    }

    /// Whether both run at the same time. A relay that was killed and restarted still looks alive for a moment, and does not count as two.
    pub fn is_beside(&self, other: &Self) -> bool {
        let (older, newer) = if self.started_at <= other.started_at { (self, other) } else { (other, self) };
        self.live && other.live && older.seen_at >= newer.started_at
    }

    /// The subscription as this relay runs it.
    pub fn run(&self, subscription: &str) -> Option<&RelayRun> {
        self.report.runs.iter().find(|run| run.subscription == subscription)
    }

    /// Whether it is running and has the subscription.
    pub fn attends(&self, subscription: &str) -> bool {
        self.live && self.run(subscription).is_some()
    }
}

impl RelayReport {
    /// Checks that a store can keep it.
    pub fn check(&self) -> Result<()> {
        for (what, text) in [("name", &self.name), ("host", &self.host), ("version", &self.version)] {
            if text.is_empty() || text.len() > Limits::NAME || text.contains('\0') {
                let message = format!(
                    "the {what} of a relay must have 1 to {} bytes and no NUL character",
                    Limits::NAME
                );
                return Err(Error::new(ErrorKind::Invalid, "heartbeat", message));
            }
        }
        Ok(())
    }

    /// Its subscriptions as a store keeps them.
    pub fn runs_as_json(&self) -> Result<String> {
        // ASCII, as everything that only people read: a database of another encoding must not refuse it.
        serde_json::to_string(&self.runs).map(|json| ascii(&json)).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                "heartbeat",
                format!("can't serialize the relay's report: {error}"),
            )
        })
    }

    /// The reverse of [`runs_as_json`](Self::runs_as_json). Text of another version that can't be read gives no runs; the relay is
    /// still listed.
    pub fn runs_from_json(text: &str) -> Vec<RelayRun> {
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// Fails if a live relay runs the subscription, which must then not be removed.
pub fn refuse_to_remove(subscription: &str, relays: &[RelayInfo]) -> Result<()> {
    let names: Vec<_> = relays.iter().filter(|relay| relay.attends(subscription)).collect();
    let Some(first) = names.first() else { return Ok(()) };
    let (name, host, others) = (&first.report.name, &first.report.host, names.len() - 1);
    let more = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    let message = format!(
        "the relay {name:?} on {host}{more} runs the subscription {subscription:?}; stop it first, or force it"
    );
    Err(Error::new(ErrorKind::Refused, "remove", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(seen: i64, now: OffsetDateTime) -> RelayInfo {
        let seen_at = now - Duration::from_secs(seen.unsigned_abs());
        let run = RelayRun { subscription: "mail".into(), ..RelayRun::default() };
        RelayInfo {
            report: RelayReport {
                id: Uuid::nil(),
                name: "a".into(),
                host: "h".into(),
                process: 1,
                version: "1".into(),
                runs: vec![run],
            },
            started_at: seen_at,
            seen_at,
            live: RelayInfo::is_live(seen_at, now),
        }
    }

    #[test]
    fn a_relay_that_missed_three_reports_is_gone() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert!(relay(59, now).attends("mail"));
        assert!(!relay(61, now).attends("mail"));
        assert!(!relay(0, now).attends("other"));
        assert!(!RelayInfo::is_live(now + Duration::from_secs(3600), now), "seen in the future");
    }

    #[test]
    fn a_relay_that_was_seen_too_long_ago_or_too_far_in_the_future_is_forgotten() {
        let (day, second) = (RelayInfo::FORGOTTEN_AFTER, Duration::from_secs(1));
        let now = OffsetDateTime::UNIX_EPOCH + day * 9;
        for (seen_at, forgotten) in
            [(now - day, false), (now - day - second, true), (now + day, false), (now + day + second, true)]
        {
            assert_eq!(RelayInfo::is_forgotten(seen_at, now), forgotten, "{seen_at}");
        }
    }

    #[test]
    fn a_relay_that_was_killed_and_started_anew_is_not_two() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let (killed, anew) = (relay(30, now), relay(0, now));
        assert!(!killed.is_beside(&anew) && !anew.is_beside(&killed));
        let older = RelayInfo { seen_at: now, ..killed };
        assert!(older.is_beside(&anew) && anew.is_beside(&older), "it was seen since the other started");
    }

    #[test]
    fn settings_that_differ_are_named() {
        let run = |settings: &[(&str, &str)]| RelayRun {
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..RelayRun::default()
        };
        let first = run(&[("lanes", "1"), ("timeout", "1s")]);
        assert_eq!(first.differing(&run(&[("lanes", "1"), ("timeout", "2s")])), ["timeout"]);
        assert!(first.differing(&first.clone()).is_empty());
        let other = run(&[("lanes", "1"), ("patience", "5s")]);
        assert_eq!(first.differing(&other), ["patience", "timeout"]);
        assert_eq!(other.differing(&first), ["patience", "timeout"], "whichever comes first");
    }

    #[test]
    fn what_a_live_relay_has_is_not_removed() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let error = refuse_to_remove("mail", &[relay(5, now)]).expect_err("it is there");
        assert_eq!(error.kind(), ErrorKind::Refused);
        refuse_to_remove("mail", &[relay(500, now)]).expect("it is gone");
        refuse_to_remove("other", &[relay(5, now)]).expect("it has another");
    }

    #[test]
    fn a_report_of_another_version_is_read_as_far_as_it_is_understood() {
        let runs = RelayReport::runs_from_json(r#"[{"subscription":"mail","news":1}]"#);
        assert_eq!(runs[0].subscription, "mail");
        assert!(RelayReport::runs_from_json("{}").is_empty());
    }
}
