//! Incidents that are open for events that died, with those who keep any: each is over when its events are dead no longer.

use postrider::Result;
use postrider::store::{OpenDeliveryQuery, Store};
use serde::{Deserialize, Serialize};

use super::dead_event::DeadEvent;
use super::message::Message;
use super::note::time_of;

/// So many are looked after in all; older ones are left to people.
pub(crate) const MOST: usize = 200;

/// An incident of an event that died, or of a flood of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    target: String,
    alert: String,
    incident: String,
    /// The one that all of them died for; nothing if it was several.
    subscription: Option<String>,
    /// The event, by its number and its id; nothing for a flood.
    event: Option<(i64, String)>,
    /// When the first and the last of them died.
    died: (i64, i64),
}

impl Open {
    /// The one that a target opens when it hears of these deaths.
    pub(crate) fn of(target: &str, message: &Message, deaths: &[DeadEvent]) -> Option<Self> {
        let times = || deaths.iter().map(|death| death.at);
        let one = |name: &String| deaths.iter().all(|death| death.subscription == *name);
        let event = match deaths {
            [death] => Some((death.id, death.event_id.to_string())),
            _ => None,
        };
        Some(Self {
            target: target.to_owned(),
            alert: message.alert.clone(),
            incident: message.incident.clone(),
            subscription: deaths.first().map(|death| death.subscription.clone()).filter(one),
            event,
            died: (times().min()?, times().max()?),
        })
    }

    /// Who keeps it.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Whether it is that incident of that target.
    pub(crate) fn is(&self, target: &str, incident: &str) -> bool {
        self.target == target && self.incident == incident
    }

    /// Whether it is the incident of an event that has died anew.
    pub(crate) fn is_of(&self, death: &DeadEvent) -> bool {
        let event = self.event.as_ref().is_some_and(|(id, _)| *id == death.id);
        event && self.subscription.as_deref() == Some(&*death.subscription)
    }

    /// Whether its event, or any event of the flood, is dead still.
    pub(crate) async fn is_dead(&self, log: &dyn Store) -> Result<bool> {
        let subscription = self.subscription.clone();
        let before = self.event.as_ref().map(|(id, _)| (id - 1, subscription.clone().unwrap_or_default()));
        let query = OpenDeliveryQuery {
            subscription,
            from: Some(time_of(self.died.0)),
            until: Some(time_of(self.died.1 + 1)),
            after: before,
            bare: true,
            limit: 1,
            ..OpenDeliveryQuery::default()
        };
        let found = log.open_deliveries(&query).await?.pop();
        Ok(match (&self.event, found) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some((id, _)), Some(dead)) => dead.event.id == *id,
        })
    }

    /// That it is over.
    pub(crate) fn over(&self) -> Message {
        let event = self.event.as_ref().map(|(_, event_id)| event_id.as_str());
        Message::buried(&self.alert, &self.incident, &self.subscription, event)
    }
}
