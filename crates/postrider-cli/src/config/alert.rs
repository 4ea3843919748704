//! When somebody is told, and who: `[[alert]]` and `[notify.NAME]`.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

use super::nearest::nearest;
use super::{Problem, Section, duration};

/// When somebody is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alert {
    /// What it is called.
    pub(crate) name: String,
    /// When.
    pub(crate) when: When,
    /// Whom: names of `[notify.NAME]`.
    pub(crate) to: Vec<String>,
    /// Of one subscription; of each unless set.
    pub(crate) subscription: Option<String>,
    /// After how long it is said again while it lasts; never unless set.
    pub(crate) repeat: Option<Duration>,
}

/// What has to be so.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum When {
    /// A figure is too high.
    Figure(Figure, Than, f64),
    /// Any event dies.
    EventDies,
}

/// A figure of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Pending, processing and retrying together.
    Undelivered,
    /// Of those, the ones recorded longer ago than this.
    UndeliveredOver(Duration),
    /// The age of the oldest of them.
    OldestSeconds,
    /// Failed and to be tried again.
    Retrying,
    /// Given up.
    Dead,
    /// How often the undelivered ones were tried.
    MeanAttempts,
}

/// `>` or `>=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Than {
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// What the systems that Postrider was drawn from ask for.
const PRESETS: &[(&str, &[&str])] = &[
    ("saas", &["undelivered > 1000", "oldest_seconds > 60", "dead > 10", "mean_attempts > 1"]),
    ("ledger", &["event dies", "undelivered_over(5m) >= 100"]),
    ("transfers", &["event dies", "undelivered > 10000", "retrying > 100"]),
];

const FIGURES: [(&str, Figure); 5] = [
    ("undelivered", Figure::Undelivered),
    ("oldest_seconds", Figure::OldestSeconds),
    ("retrying", Figure::Retrying),
    ("dead", Figure::Dead),
    ("mean_attempts", Figure::MeanAttempts),
];

impl Alert {
    /// Reads one, or those of a preset.
    pub(crate) fn read(
        mut section: Section<'_>,
        notify: &BTreeMap<String, Notify>,
        readers: &HashSet<String>,
    ) -> Result<Vec<Self>, Problem> {
        let name = section.text("name")?;
        let to = section.list("to")?.unwrap_or_else(|| vec!["log".to_owned()]);
        for target in &to {
            if target != "log" && !notify.contains_key(target) {
                let what = match nearest(target, notify.keys().map(String::as_str).chain(["log"])) {
                    Some(meant) => format!("there is no [notify.{target}]; is {meant:?} meant?"),
                    None => format!("there is no [notify.{target}]; add one, or write \"log\""),
                };
                return Err(section.problem("to", what));
            }
        }
        let subscription = section.text("subscription")?;
        if let Some(wanted) =
            subscription.as_ref().filter(|wanted| !readers.is_empty() && !readers.contains(*wanted))
        {
            let what = match nearest(wanted, readers.iter().map(String::as_str)) {
                Some(meant) => format!("there is no subscription {wanted:?}; is {meant:?} meant?"),
                None => format!("there is no subscription {wanted:?} in this file"),
            };
            return Err(section.problem("subscription", what));
        }
        let repeat = section.duration("repeat")?;
        let conditions: Vec<String> = match (section.text("when")?, section.text("preset")?) {
            (Some(when), None) => vec![when],
            (None, Some(preset)) => match PRESETS.iter().find(|(name, _)| *name == preset) {
                Some((_, conditions)) => conditions.iter().map(|each| (*each).to_owned()).collect(),
                None => {
                    let all: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
                    return Err(section
                        .problem("preset", format!("{preset:?} is not known; there is {}", all.join(", "))));
                }
            },
            (Some(_), Some(_)) => return Err(section.problem("preset", "when and preset exclude each other")),
            (None, None) => {
                return Err(
                    section.problem("when", "it is missing; for example when = \"undelivered > 1000\"")
                );
            }
        };
        let mut alerts = Vec::new();
        for text in conditions {
            let when = When::parse(&text).map_err(|what| section.problem("when", what))?;
            let name = name.clone().unwrap_or_else(|| text.clone());
            alerts.push(Self { name, when, to: to.clone(), subscription: subscription.clone(), repeat });
        }
        section.finish()?;
        Ok(alerts)
    }
}

impl When {
    /// Reads a condition.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "event dies" {
            return Ok(Self::EventDies);
        }
        let (left, than, right) = match (text.split_once(">="), text.split_once('>')) {
            (Some((left, right)), _) => (left, Than::AtLeast, right),
            (None, Some((left, right))) => (left, Than::More, right),
            _ => {
                return Err(format!(
                    "{text:?} is no condition; write \"undelivered > 1000\" or \"event dies\""
                ));
            }
        };
        let limit: f64 = right.trim().parse().map_err(|_| format!("{:?} is no number", right.trim()))?;
        if !limit.is_finite() || limit < 0.0 {
            return Err(format!("{limit} is no limit; it is 0 or more"));
        }
        Ok(Self::Figure(Figure::parse(left.trim())?, than, limit))
    }
}

impl Figure {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some((_, figure)) = FIGURES.iter().find(|(name, _)| *name == text) {
            return Ok(*figure);
        }
        if let Some(age) = text.strip_prefix("undelivered_over(").and_then(|rest| rest.strip_suffix(')')) {
            let age = duration::parse(age)
                .ok_or_else(|| format!("{age:?} is no time, as in undelivered_over(5m)"))?;
            return Ok(Self::UndeliveredOver(age));
        }
        let names = FIGURES.iter().map(|(name, _)| *name).chain(["undelivered_over(5m)"]);
        match nearest(text, names.clone()) {
            Some(meant) => Err(format!("there is no figure {text:?}; is {meant} meant?")),
            None => {
                Err(format!("there is no figure {text:?}; there is {}", names.collect::<Vec<_>>().join(", ")))
            }
        }
    }
}

/// Who is told.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Notify {
    /// A Slack channel, by its incoming webhook.
    Slack(String),
    /// A PagerDuty service: the address of its events API, and its key.
    PagerDuty(String, String),
    /// Any endpoint that takes JSON, and its token.
    Webhook(String, Option<String>),
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Slack,
    PagerDuty,
    Webhook,
}

impl Notify {
    /// Reads one.
    pub(crate) fn read(mut section: Section<'_>) -> Result<Self, Problem> {
        let kinds = [("slack", Kind::Slack), ("pagerduty", Kind::PagerDuty), ("webhook", Kind::Webhook)];
        let Some(kind) = section.word("type", &kinds)? else {
            return Err(
                section.problem("type", "it is missing; there is \"slack\", \"pagerduty\" and \"webhook\"")
            );
        };
        let notify = match kind {
            Kind::Slack => Self::Slack(section.need("url", "env:SLACK_URL")?),
            Kind::PagerDuty => {
                let url = section
                    .text("url")?
                    .unwrap_or_else(|| "https://events.pagerduty.com/v2/enqueue".to_owned());
                Self::PagerDuty(url, section.need("key", "env:PAGERDUTY_KEY")?)
            }
            Kind::Webhook => {
                Self::Webhook(section.need("url", "https://example.org/alerts")?, section.text("token")?)
            }
        };
        let url = match &notify {
            Self::Slack(url) | Self::PagerDuty(url, _) | Self::Webhook(url, _) => url,
        };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(section.problem("url", "it begins with https:// or http://"));
        }
        section.finish()?;
        Ok(notify)
    }

    /// The word for it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Slack(_) => "slack",
            Self::PagerDuty(..) => "pagerduty",
            Self::Webhook(..) => "webhook",
        }
    }
}
