//! When somebody is told: `[[alert]]`.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

use postrider::store::nearest;

use super::{Notify, Problem, Section, duration};

/// When somebody is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alert {
    /// What it is called.
    pub(crate) name: String,
    /// When.
    pub(crate) when: When,
    /// Whom: names of `[notify.NAME]`.
    pub(crate) to: Vec<String>,
    /// Of what; of each subscription unless set.
    pub(crate) of: Of,
    /// After how long it is said again while it lasts; never unless set.
    pub(crate) repeat: Option<Duration>,
}

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Of {
    /// Each subscription by itself.
    Each,
    /// One subscription.
    One(String),
    /// All subscriptions, taken together.
    All,
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
    /// For how long the destination has been unavailable; 0 while it is available.
    UnavailableSeconds,
}

/// `>` or `>=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Than {
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// The defaults: of several words, the first.
pub(crate) const TO: &[&str] = &["log"];
pub(crate) const OF: [(&str, bool); 2] = [("each", false), ("all", true)];

/// What the systems that Postrider was drawn from ask for. While a destination is unavailable nothing is tried, so nothing is
/// retrying: the outage has an alert of its own.
const PRESETS: &[(&str, &[&str])] = &[
    ("saas", &["undelivered > 1000", "oldest_seconds > 60", "dead > 10", "mean_attempts > 1"]),
    ("ledger", &["event dies", "undelivered_over(5m) >= 100", "unavailable_seconds > 60"]),
    ("transfers", &["event dies", "undelivered > 10000", "retrying > 100", "unavailable_seconds > 60"]),
];

const FIGURES: [(&str, Figure); 6] = [
    ("undelivered", Figure::Undelivered),
    ("oldest_seconds", Figure::OldestSeconds),
    ("retrying", Figure::Retrying),
    ("dead", Figure::Dead),
    ("mean_attempts", Figure::MeanAttempts),
    ("unavailable_seconds", Figure::UnavailableSeconds),
];

/// So many events that were not read yet are counted at most, whatever the backlog.
const MOST_COUNTED: f64 = 1_000_000.0;

impl Alert {
    /// Reads one, or those of a preset; those `before` it have their names already.
    pub(crate) fn read(
        mut section: Section<'_>,
        notify: &BTreeMap<String, Notify>,
        readers: &HashSet<String>,
        before: &[Self],
    ) -> Result<Vec<Self>, Problem> {
        let name = section.text("name")?;
        let to = targets(&mut section, notify)?;
        let others = section.lists("to_when")?;
        let of = subscriptions(&mut section, readers)?;
        let repeat = section.duration("repeat")?;
        if repeat == Some(Duration::ZERO) {
            return Err(
                section.problem("repeat", "it must be greater than 0; leave it out to notify only once")
            );
        }
        let (preset, conditions) = conditions(&mut section)?;
        let others = others_told(&section, preset, &conditions, others, notify)?;
        let mut alerts = Vec::new();
        let several = conditions.len() > 1;
        for text in conditions {
            let when = When::parse(&text).map_err(|what| section.problem("when", what))?;
            let name = match &name {
                // What belongs to a preset stays apart.
                Some(name) if several => format!("{name}: {text}"),
                Some(name) => name.clone(),
                None => text.clone(),
            };
            if let Some(twin) = before.iter().find(|other| other.name == name && other.of.overlaps(&of)) {
                let what =
                    format!("another alert for {} is also named {name:?}; names must be unique", twin.of);
                return Err(section.problem("name", what));
            }
            let other = others.iter().find(|(condition, _)| *condition == when);
            let to = other.map_or_else(|| to.clone(), |(_, told)| told.clone());
            alerts.push(Self { name, when, to, of: of.clone(), repeat });
        }
        section.finish()?;
        Ok(alerts)
    }
}

/// Who is told: the log unless set.
fn targets(section: &mut Section<'_>, notify: &BTreeMap<String, Notify>) -> Result<Vec<String>, Problem> {
    let to = section.list("to")?.unwrap_or_else(|| TO.iter().map(|&target| target.to_owned()).collect());
    known_targets(section, "to", to, notify)
}

/// Each target once; one that is not described is refused.
fn known_targets(
    section: &Section<'_>,
    key: &str,
    mut to: Vec<String>,
    notify: &BTreeMap<String, Notify>,
) -> Result<Vec<String>, Problem> {
    let mut known = HashSet::new();
    to.retain(|target| known.insert(target.clone()));
    for target in &to {
        if target != "log" && !notify.contains_key(target) {
            let what = match nearest(target, notify.keys().map(String::as_str).chain(["log"])) {
                Some(meant) => format!("there is no [notify.{target}]; did you mean {meant:?}?"),
                None => format!("there is no [notify.{target}]; add it, or use \"log\""),
            };
            return Err(section.problem(key, what));
        }
    }
    Ok(to)
}

/// Who is told of single conditions of a preset, in place of those that `to` names.
fn others_told(
    section: &Section<'_>,
    preset: Option<String>,
    conditions: &[String],
    others: Vec<(String, Vec<String>)>,
    notify: &BTreeMap<String, Notify>,
) -> Result<Vec<(When, Vec<String>)>, Problem> {
    let mut read: Vec<(When, Vec<String>)> = Vec::new();
    for (text, to) in others {
        let Some(preset) = &preset else {
            let what = "to_when is for the conditions of a preset; of a single condition set to";
            return Err(section.problem("to_when", what));
        };
        let key = format!("to_when.{text:?}");
        let when = conditions.iter().filter_map(|condition| When::parse(condition).ok());
        let Some(when) = when.into_iter().find(|when| When::parse(&text).is_ok_and(|text| text == *when))
        else {
            let all: Vec<String> = conditions.iter().map(|condition| format!("{condition:?}")).collect();
            let what =
                format!("the preset {preset:?} has no such condition; it must be one of {}", all.join(", "));
            return Err(section.problem(&key, what));
        };
        if read.iter().any(|(other, _)| *other == when) {
            return Err(section.problem(&key, "duplicate condition; conditions must be unique"));
        }
        read.push((when, known_targets(section, &key, to, notify)?));
    }
    Ok(read)
}

/// Which subscriptions it is about.
fn subscriptions(section: &mut Section<'_>, readers: &HashSet<String>) -> Result<Of, Problem> {
    let subscription = section.text("subscription")?;
    if let Some(wanted) =
        subscription.as_ref().filter(|wanted| !readers.is_empty() && !readers.contains(*wanted))
    {
        let what = match nearest(wanted, readers.iter().map(String::as_str)) {
            Some(meant) => format!("there is no subscription {wanted:?}; did you mean {meant:?}?"),
            None => format!("there is no [[subscription]] named {wanted:?}; add it"),
        };
        return Err(section.problem("subscription", what));
    }
    match (subscription, section.word("of", &OF)?) {
        (None, Some(true)) => Ok(Of::All),
        (None, _) => Ok(Of::Each),
        (Some(name), None) => Ok(Of::One(name)),
        (Some(_), Some(_)) => Err(section.problem("of", "of and subscription can't be used together")),
    }
}

/// The condition, or those of a preset and its name.
fn conditions(section: &mut Section<'_>) -> Result<(Option<String>, Vec<String>), Problem> {
    match (section.text("when")?, section.text("preset")?) {
        (Some(when), None) => Ok((None, vec![when])),
        (None, Some(preset)) => match PRESETS.iter().find(|(name, _)| *name == preset) {
            Some((_, conditions)) => {
                let conditions = conditions.iter().map(|each| (*each).to_owned()).collect();
                Ok((Some(preset), conditions))
            }
            None => {
                let all: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
                let what = format!("{preset:?} is not a preset; it must be one of {}", all.join(", "));
                Err(section.problem("preset", what))
            }
        },
        (Some(_), Some(_)) => Err(section.problem("preset", "when and preset can't be used together")),
        (None, None) => {
            Err(section.problem("when", "it is required; for example when = \"undelivered > 1000\""))
        }
    }
}

impl Of {
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(one), Self::One(other)) => one == other,
            (Self::All, other) | (other, Self::All) => *other == Self::All,
            (Self::Each, _) | (_, Self::Each) => true,
        }
    }
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each => f.write_str("each subscription"),
            Self::One(name) => f.write_str(name),
            Self::All => f.write_str("all subscriptions together"),
        }
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
                    "{text:?} is not a condition; write \"undelivered > 1000\" or \"event dies\""
                ));
            }
        };
        let limit: f64 = right.trim().parse().map_err(|_| format!("{:?} is not a number", right.trim()))?;
        if !limit.is_finite() || limit < 0.0 {
            return Err(format!("the limit must be 0 or more, not {limit}"));
        }
        let figure = Figure::parse(left.trim())?;
        let counted = matches!(figure, Figure::Undelivered | Figure::UndeliveredOver(_));
        if counted && (limit > MOST_COUNTED || (limit == MOST_COUNTED && than == Than::More)) {
            return Err(format!(
                "at most {MOST_COUNTED} undelivered events are counted, so the limit {limit} can never be reached; lower it, \
                 or use oldest_seconds"
            ));
        }
        Ok(Self::Figure(figure, than, limit))
    }
}

impl Figure {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some((_, figure)) = FIGURES.iter().find(|(name, _)| *name == text) {
            return Ok(*figure);
        }
        if let Some(age) = text.strip_prefix("undelivered_over(").and_then(|rest| rest.strip_suffix(')')) {
            let age = duration::parse(age)
                .ok_or_else(|| format!("{age:?} is not a duration; write it as in undelivered_over(5m)"))?;
            return Ok(Self::UndeliveredOver(age));
        }
        let names = FIGURES.iter().map(|(name, _)| *name).chain(["undelivered_over(5m)"]);
        match nearest(text, names.clone()) {
            Some(meant) => Err(format!("there is no figure {text:?}; did you mean {meant}?")),
            None => Err(format!(
                "there is no figure {text:?}; the known ones are {}",
                names.collect::<Vec<_>>().join(", ")
            )),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UndeliveredOver(age) => write!(f, "undelivered_over({})", duration::show(*age)),
            named => {
                let name = FIGURES.iter().find(|(_, figure)| figure == named).map_or("", |(name, _)| name);
                f.write_str(name)
            }
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventDies => f.write_str("event dies"),
            Self::Figure(figure, Than::More, limit) => write!(f, "{figure} > {limit}"),
            Self::Figure(figure, Than::AtLeast, limit) => write!(f, "{figure} >= {limit}"),
        }
    }
}
