//! What became of an event for each subscription.

use postrider::OffsetDateTime;
use postrider::store::{EventRef, EventState, State, StateQuery};
use serde::Serialize;

use super::attempts::{self, AttemptView};
use crate::Failure;
use crate::database::SharedStore;
use crate::output::{self, Time};

/// What became of an event for a subscription.
#[derive(Serialize)]
pub(crate) struct DeliveryView {
    pub(crate) subscription: String,
    #[serde(serialize_with = "word")]
    pub(crate) state: State,
    attempts: u32,
    next_retry_at: Option<Time>,
    last_attempt_at: Option<Time>,
    delivered_at: Option<Time>,
    delivered_by: Option<String>,
    lease_owner: Option<String>,
    lease_until: Option<Time>,
    error_code: Option<String>,
    error_message: Option<String>,
    last_attempts: Vec<AttemptView>,
}

fn word<S: serde::Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

impl DeliveryView {
    /// The view of a state, with the last tries that failed.
    fn of(state: EventState, last_attempts: Vec<AttemptView>) -> Self {
        Self {
            subscription: state.subscription,
            state: state.state,
            attempts: state.attempts,
            next_retry_at: state.next_retry_at.map(Time),
            last_attempt_at: state.last_attempt_at.map(Time),
            delivered_at: state.delivered_at.map(Time),
            delivered_by: state.delivered_by,
            lease_owner: state.lease_owner,
            lease_until: state.lease_until.map(Time),
            error_code: state.error_code,
            error_message: state.error_message,
            last_attempts,
        }
    }

    /// In a line, another one for what went wrong, and the last tries that failed.
    fn lines(&self, now: OffsetDateTime) -> String {
        let ago = |time: &Option<Time>| match time {
            Some(time) => format!(" {} ago", output::since(time.0.min(now), now)),
            None => String::new(),
        };
        let tries = output::count(u64::from(self.attempts), "attempt");
        let by = |who: &Option<String>| {
            who.as_ref().map(|who| format!(" by {}", output::plain(who))).unwrap_or_default()
        };
        let mut what = match self.state {
            State::Pending => "not read yet".to_owned(),
            State::Processing => format!("in flight{}", by(&self.lease_owner)),
            State::Retrying if self.attempts == 0 => "waits for an earlier event of its key".to_owned(),
            State::Retrying => {
                let next = self.next_retry_at.map(|next| format!(", next {}", soon(next.0, now)));
                format!(
                    "failed after {tries}, last{}{}",
                    ago(&self.last_attempt_at),
                    next.unwrap_or_default()
                )
            }
            State::Dead => format!("died after {tries}, last{}", ago(&self.last_attempt_at)),
            State::Done => {
                let after = if self.attempts > 1 { format!(" after {tries}") } else { String::new() };
                format!("delivered{}{}{after}", ago(&self.delivered_at), by(&self.delivered_by))
            }
            State::Discarded => format!("discarded by an operator after {tries}"),
        };
        what = format!("  {}: {}, {what}\n", output::plain(&self.subscription), self.state);
        if self.error_code.is_some() || self.error_message.is_some() {
            let code = self.error_code.as_deref().unwrap_or("failed");
            let message = self.error_message.as_deref().unwrap_or("no message");
            what.push_str(&format!("      {}: {}\n", output::plain(code), output::plain(message)));
        }
        what.push_str(&attempts::text(&self.last_attempts, output::width()));
        what
    }
}

/// What became of an event for the subscriptions that are wanted.
pub(crate) async fn of_event(
    log: &SharedStore,
    event: EventRef,
    wanted: impl Fn(&EventState) -> bool,
) -> Result<Vec<DeliveryView>, Failure> {
    let query = StateQuery { event_id: Some(event.event_id), ..StateQuery::default() };
    let states = log.states(&query).await?.into_iter().filter(wanted);
    let mut tried = attempts::of_event(log.as_ref(), event).await?;
    let view = |state: EventState| {
        let attempts = tried.remove(&state.subscription).unwrap_or_default();
        DeliveryView::of(state, attempts)
    };
    Ok(states.map(view).collect())
}

fn soon(time: OffsetDateTime, now: OffsetDateTime) -> String {
    if time <= now { "now".to_owned() } else { output::since(time, now) }
}

/// What became of an event, for people.
pub(crate) fn text(deliveries: &[DeliveryView], archived: bool, now: OffsetDateTime) -> String {
    if deliveries.is_empty() {
        return match archived {
            true => "\nevery subscription that matches it has settled it; it is archived\n".to_owned(),
            false => "\nno subscription matches it\n".to_owned(),
        };
    }
    let lines: String = deliveries.iter().map(|delivery| delivery.lines(now)).collect();
    format!("\ndeliveries:\n{lines}")
}
