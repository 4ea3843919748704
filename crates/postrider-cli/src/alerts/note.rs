//! What each target was told: the leader keeps it from round to round, and leaves it to the next leader.
//!
//! It knows no database and no network. A round gives it the readings, asks it which messages are due, and reports which were sent.
//! A message that could not be sent is due again in the next round.

use std::collections::{BTreeMap, BTreeSet};

use postrider::OffsetDateTime;
use serde::{Deserialize, Serialize};

use super::dead_event::{DeadEvent, Since, Told};
use super::message::Message;
use super::open::{self, Open};
use super::reading::Reading;
use crate::config::Alert;
use crate::config::alert::When;

/// It is over when it was fine for so many rounds in a row: what goes up and down every minute is one alert.
const CALM: u32 = 2;
/// So many deaths are remembered in all.
const MOST_DEATHS: usize = 2000;

/// What each target was told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    #[serde(default)]
    firing: Vec<Firing>,
    #[serde(default)]
    deaths: Vec<Told>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<Open>,
}

/// An alert that fires, or whose end was not sent to every target yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Firing {
    alert: String,
    subject: Option<String>,
    /// What the alert is to PagerDuty, also when a speaker knows the database by another name.
    incident: String,
    since: i64,
    /// For how many rounds in a row it was fine.
    calm: u32,
    /// Who was told that it fires, and when last.
    told: BTreeMap<String, i64>,
}

/// A message that a target must still get.
#[derive(Debug, Clone)]
pub(crate) struct PendingNotice {
    /// To whom.
    pub(crate) target: String,
    /// What.
    pub(crate) message: Message,
    about: About,
}

#[derive(Debug, Clone, PartialEq)]
enum About {
    Fires { alert: String, subject: Option<String> },
    Over { alert: String, subject: Option<String> },
    Deaths { alert: String, deaths: Vec<DeadEvent> },
    Buried,
}

impl Note {
    /// What the speaker before has left; nothing if it can't be read.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The note as it is kept.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Takes in how things stand.
    pub(crate) fn observe(&mut self, readings: &[Reading<'_>], source: &str, now: OffsetDateTime) {
        for firing in &mut self.firing {
            // Also of an alert or a subscription that is no longer there.
            firing.calm = (firing.calm + 1).min(CALM);
        }
        for reading in readings.iter().filter(|reading| reading.fires) {
            let (alert, subject) = (&reading.alert.name, &reading.subject);
            match self.firing.iter_mut().find(|firing| firing.is(alert, subject)) {
                Some(firing) => firing.calm = 0,
                None => self.firing.push(Firing {
                    alert: alert.clone(),
                    subject: subject.clone(),
                    incident: Message::incident(&[source, alert, subject.as_deref().unwrap_or("*")]),
                    since: micros(now),
                    calm: 0,
                    told: BTreeMap::new(),
                }),
            }
        }
        self.forget();
    }

    /// Which deaths are of interest to somebody: from a time on for each who has heard so far and no further.
    pub(crate) fn deaths_since(&mut self, alerts: &[Alert], now: OffsetDateTime) -> BTreeSet<Since> {
        let pairs = || {
            let dies = alerts.iter().filter(|alert| alert.when == When::EventDies);
            dies.flat_map(|alert| alert.to.iter().map(move |target| (&alert.name, target)))
        };
        self.deaths.retain(|told| pairs().any(|(alert, target)| told.is(alert, target)));
        for (alert, target) in pairs() {
            if !self.deaths.iter().any(|told| told.is(alert, target)) {
                self.deaths.push(Told::new(alert, target, now));
            }
        }
        let of = |told: &Told| {
            let of = alerts.iter().filter(|alert| told.is_of(alert)).map(|alert| told.since(alert));
            of.collect::<Vec<_>>()
        };
        self.deaths.iter().flat_map(of).collect()
    }

    /// What is to be said to whom, in order.
    pub(crate) fn due(
        &self,
        readings: &[Reading<'_>],
        alerts: &[Alert],
        deaths: &BTreeMap<Since, Vec<DeadEvent>>,
        source: &str,
        now: OffsetDateTime,
    ) -> Vec<PendingNotice> {
        let mut due = Vec::new();
        for firing in &self.firing {
            let reading = readings.iter().find(|reading| firing.is(&reading.alert.name, &reading.subject));
            due.extend(firing.due(reading, now));
        }
        for told in &self.deaths {
            for alert in alerts.iter().filter(|alert| told.is_of(alert)) {
                let Some(deaths) = deaths.get(&told.since(alert)) else { continue };
                for (message, deaths) in told.due(alert, deaths, source) {
                    let about = About::Deaths { alert: alert.name.clone(), deaths };
                    due.push(PendingNotice { target: told.target().to_owned(), message, about });
                }
            }
        }
        due
    }

    /// The incidents of events that died.
    pub(crate) fn open(&self) -> &[Open] {
        &self.open
    }

    /// The messages that close these incidents, whose events are not dead any more. If one died again, its incident goes on.
    pub(crate) fn buried(
        &self,
        over: &[Open],
        deaths: &BTreeMap<Since, Vec<DeadEvent>>,
    ) -> Vec<PendingNotice> {
        let goes_on = |open: &&Open| deaths.values().flatten().any(|death| open.is_of(death));
        let over = self.open.iter().filter(|open| over.contains(open)).filter(|open| !goes_on(open));
        over.map(|open| PendingNotice {
            target: open.target().to_owned(),
            message: open.over(),
            about: About::Buried,
        })
        .collect()
    }

    /// This message opened an incident at its target.
    pub(crate) fn opened(&mut self, notice: &PendingNotice) {
        let About::Deaths { deaths, .. } = &notice.about else { return };
        let Some(open) = Open::of(&notice.target, &notice.message, deaths) else { return };
        self.open.retain(|open| !open.is(&notice.target, &notice.message.incident));
        self.open.push(open);
        let many = self.open.len().saturating_sub(open::MOST);
        self.open.drain(..many);
    }

    /// This was said.
    pub(crate) fn said(&mut self, notice: &PendingNotice, now: OffsetDateTime) {
        let target = &notice.target;
        match &notice.about {
            About::Fires { alert, subject } => {
                if let Some(firing) = self.firing.iter_mut().find(|firing| firing.is(alert, subject)) {
                    firing.told.insert(target.clone(), micros(now));
                }
            }
            About::Over { alert, subject } => {
                if let Some(firing) = self.firing.iter_mut().find(|firing| firing.is(alert, subject)) {
                    firing.told.remove(target);
                }
            }
            About::Deaths { alert, deaths } => {
                if let Some(told) = self.deaths.iter_mut().find(|told| told.is(alert, target)) {
                    told.hears(deaths);
                }
            }
            About::Buried => self.open.retain(|open| !open.is(target, &notice.message.incident)),
        }
        self.forget();
    }

    /// The round is over, and these targets were not told all that was due.
    pub(crate) fn close(&mut self, deaf: &BTreeSet<String>, now: OffsetDateTime) {
        let each = MOST_DEATHS / self.deaths.len().max(1);
        for told in self.deaths.iter_mut().filter(|told| !deaf.contains(told.target())) {
            told.close(each, now);
        }
    }

    /// Forgets targets that are no longer there, so that nobody waits for them.
    pub(crate) fn keep_targets(&mut self, exists: impl Fn(&str) -> bool) {
        for firing in &mut self.firing {
            firing.told.retain(|target, _| exists(target));
        }
        self.open.retain(|open| exists(open.target()));
        self.forget();
    }

    /// Forgets alerts that are over, once every target was told.
    fn forget(&mut self) {
        self.firing.retain(|firing| firing.calm < CALM || !firing.told.is_empty());
    }
}

impl Firing {
    fn is(&self, alert: &str, subject: &Option<String>) -> bool {
        self.alert == alert && self.subject == *subject
    }

    fn due(&self, reading: Option<&Reading<'_>>, now: OffsetDateTime) -> Vec<PendingNotice> {
        let (alert, subject) = (self.alert.clone(), self.subject.clone());
        let since = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.since) * 1000).unwrap_or(now);
        if self.calm >= CALM {
            let message = Message::over(&self.alert, &self.subject, &self.incident, reading, since, now);
            let about = About::Over { alert, subject };
            let notice = |target: &String| PendingNotice {
                target: target.clone(),
                message: message.clone(),
                about: about.clone(),
            };
            return self.told.keys().map(notice).collect();
        }
        let Some(reading) = reading.filter(|reading| reading.fires) else { return Vec::new() };
        let mut due = Vec::new();
        for target in &reading.alert.to {
            let last = self.told.get(target);
            let again = last.zip(reading.alert.repeat).is_some_and(|(last, repeat)| {
                i128::from(micros(now)) - i128::from(*last)
                    >= i128::try_from(repeat.as_micros()).unwrap_or(i128::MAX)
            });
            if last.is_none() || again {
                due.push(PendingNotice {
                    target: target.clone(),
                    message: Message::fires(reading, &self.incident, since, now, again),
                    about: About::Fires { alert: alert.clone(), subject: subject.clone() },
                });
            }
        }
        due
    }
}

/// A time as it is kept in a note.
pub(crate) fn micros(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

/// A time that was kept in a note.
pub(crate) fn time_of(micros: i64) -> OffsetDateTime {
    let nanos = i128::from(micros) * 1000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
