//! Events that died, and which of them a target was told of.
//!
//! Deaths have no order of their own: their times are those of settles, which become visible a little later than they were
//! taken. So a target has a time from which on it was told of everything but what is in a list; the time follows slowly.

use std::collections::HashMap;
use std::time::Duration;

use postrider::store::{OpenDelivery, OpenDeliveryQuery, Store};
use postrider::{OffsetDateTime, Result, Uuid};
use serde::{Deserialize, Serialize};

use super::message::Message;
use super::note::micros;
use crate::config::Alert;
use crate::config::alert::Of;

/// A death may become visible so long after its time.
const OVERLAP: Duration = Duration::from_secs(120);
/// So many deaths are looked at in a round; of a flood, the rest is told of as "more".
pub(crate) const MOST: usize = 10_000;
/// More than this are told of in one message.
const SINGLE: usize = 20;

/// An event that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadEvent {
    /// When, in microseconds.
    pub(crate) at: i64,
    /// The event's number in the log.
    pub(crate) id: i64,
    /// For which subscription.
    pub(crate) subscription: String,
    /// The event.
    pub(crate) event_id: Uuid,
    /// Its type.
    pub(crate) event_type: String,
    /// The kind of its aggregate.
    pub(crate) aggregate_type: String,
    /// Its aggregate.
    pub(crate) aggregate_id: String,
    /// The number of attempts.
    pub(crate) attempts: u32,
    /// The code of its last failure.
    pub(crate) error_code: Option<String>,
    /// The sentence of its last failure.
    pub(crate) error_message: Option<String>,
}

impl From<OpenDelivery> for DeadEvent {
    fn from(delivery: OpenDelivery) -> Self {
        let at = delivery.last_attempt_at.or(delivery.first_failed_at).unwrap_or(delivery.event.recorded_at);
        Self {
            at: micros(at),
            id: delivery.event.id,
            subscription: delivery.subscription,
            event_id: delivery.event.event_id,
            event_type: delivery.event.event_type.to_string(),
            aggregate_type: delivery.event.aggregate_type.to_string(),
            aggregate_id: delivery.event.aggregate_id,
            attempts: delivery.attempts,
            error_code: delivery.error_code,
            error_message: delivery.error_message,
        }
    }
}

/// Which deaths somebody is interested in: those since a time, of one subscription or of all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Since {
    /// From then on.
    pub(crate) from: OffsetDateTime,
    /// Of this one only: those of others must not use up what is looked at in a round.
    pub(crate) subscription: Option<String>,
}

/// Who died since then and is dead still, in the order of their deaths; at most [`MOST`].
pub(crate) async fn deaths(log: &dyn Store, since: &Since) -> Result<Vec<DeadEvent>> {
    let Since { from, subscription } = since.clone();
    let mut query =
        OpenDeliveryQuery { from: Some(from), subscription, bare: true, ..OpenDeliveryQuery::default() };
    let mut deaths: Vec<DeadEvent> = Vec::new();
    loop {
        let page = log.open_deliveries(&query).await?;
        query.after = page.last().map(|last| (last.event.id, last.subscription.clone()));
        let full = page.len() >= query.most() as usize;
        deaths.extend(page.into_iter().map(DeadEvent::from));
        if !full || deaths.len() >= MOST {
            break;
        }
    }
    deaths.sort_by_key(|death| (death.at, death.id));
    Ok(deaths)
}

/// Which deaths a target was told of, for an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    alert: String,
    target: String,
    /// From then on it was told of those in the list alone; of what was before, of everything.
    from: i64,
    /// By time, number and subscription.
    told: Vec<(i64, i64, String)>,
}

impl Told {
    /// A target that begins to be told: not of the distant past.
    pub(crate) fn new(alert: &str, target: &str, now: OffsetDateTime) -> Self {
        let (alert, target) = (alert.to_owned(), target.to_owned());
        Self { alert, target, from: micros(now - OVERLAP), told: Vec::new() }
    }

    /// Whether it is this target's, for this alert.
    pub(crate) fn is(&self, alert: &str, target: &str) -> bool {
        self.alert == alert && self.target == target
    }

    /// Whether it is of this alert, or of one of the same name for another subscription.
    pub(crate) fn is_of(&self, alert: &Alert) -> bool {
        self.alert == alert.name && alert.to.contains(&self.target)
    }

    /// Who is told.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Which deaths are of interest, for an alert of that name.
    pub(crate) fn since(&self, alert: &Alert) -> Since {
        let nanos = i128::from(self.from) * 1000;
        let from = OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let subscription = match &alert.of {
            Of::One(name) => Some(name.clone()),
            Of::Each | Of::All => None,
        };
        Since { from, subscription }
    }

    fn knows(&self, death: &DeadEvent) -> bool {
        let same = |(at, id, subscription): &(i64, i64, String)| {
            *at == death.at && *id == death.id && *subscription == death.subscription
        };
        death.at < self.from || self.told.iter().any(same)
    }

    /// What it is to be told: each death by itself, or a flood in one message.
    pub(crate) fn due(
        &self,
        alert: &Alert,
        deaths: &[DeadEvent],
        source: &str,
    ) -> Vec<(Message, Vec<DeadEvent>)> {
        let watched = |death: &&DeadEvent| !matches!(&alert.of, Of::One(name) if *name != death.subscription);
        let news: Vec<&DeadEvent> =
            deaths.iter().filter(watched).filter(|death| !self.knows(death)).collect();
        if news.len() > SINGLE {
            let mut many: HashMap<&str, u64> = HashMap::new();
            for death in &news {
                *many.entry(&death.subscription).or_default() += 1;
            }
            let more = deaths.len() >= MOST;
            let message = Message::flood(&alert.name, &news, &many, more, source);
            return vec![(message, news.into_iter().cloned().collect())];
        }
        news.into_iter()
            .map(|death| (Message::death(&alert.name, death, source), vec![death.clone()]))
            .collect()
    }

    /// It was told of these.
    pub(crate) fn hears(&mut self, deaths: &[DeadEvent]) {
        self.told.extend(deaths.iter().map(|death| (death.at, death.id, death.subscription.clone())));
    }

    /// It was told of everything: forgets what lies so far back that nothing new can be there; of more deaths than can be kept,
    /// the oldest earlier.
    pub(crate) fn close(&mut self, most: usize, now: OffsetDateTime) {
        let past = micros(now - OVERLAP);
        if self.told.iter().any(|(at, ..)| *at < past) {
            self.from = self.from.max(past);
        }
        if self.told.len() > most {
            self.told.sort();
            let last_out = self.told[self.told.len() - most - 1].0;
            self.from = self.from.max(last_out + 1);
        }
        self.told.retain(|(at, ..)| *at >= self.from);
    }
}
