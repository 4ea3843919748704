//! Waiting for what a relay does, in tests and outside of them.

use std::time::Duration;

use postrider_core::{Backoff, Error, ErrorKind, Figures, Result, State, StateQuery, Store, Uuid};
use tokio::time::Instant;

use crate::bounded::within;

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How much longer than asked for the database may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Waits until any relay has delivered an event to a subscription.
///
/// It fails if the event is dead or discarded there, if there is no such event, or if it takes longer than `within`. In that case
/// the event may still be delivered later.
pub async fn delivered(
    store: &dyn Store,
    subscription: &str,
    event_id: Uuid,
    within: Duration,
) -> Result<()> {
    let end = Instant::now() + within;
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let query = StateQuery {
        subscription: Some(subscription.to_owned()),
        event_id: Some(event_id),
        limit: 1,
        ..StateQuery::default()
    };
    let error = |kind, message: String| Err(Error::new(kind, "wait", message));
    loop {
        match by(end, store.states(&query)).await?.first() {
            None => return error(ErrorKind::NotFound, format!("{subscription:?} has no event {event_id}")),
            Some(found) => match found.state {
                State::Done => return Ok(()),
                State::Dead | State::Discarded => {
                    let why = found.error_message.as_deref().unwrap_or("no message");
                    let message = format!("event {event_id} is {} in {subscription:?}: {why}", found.state);
                    return error(ErrorKind::NotDelivered, message);
                }
                state if Instant::now() >= end => {
                    let message =
                        format!("event {event_id} is still {state} in {subscription:?} after {within:?}");
                    return error(ErrorKind::TimedOut, message);
                }
                _ => {}
            },
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Waits until a subscription has no undelivered events. Dead events do not count.
pub async fn quiet(store: &dyn Store, subscription: &str, within: Duration) -> Result<()> {
    let end = Instant::now() + within;
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        let undelivered: u64 =
            by(end, store.figures(subscription)).await?.iter().map(Figures::undelivered).sum();
        if undelivered == 0 {
            return Ok(());
        }
        if Instant::now() >= end {
            let message =
                format!("{undelivered} events are still undelivered in {subscription:?} after {within:?}");
            return Err(Error::new(ErrorKind::TimedOut, "wait", message));
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// What the database answers, unless it takes much longer than there is time.
async fn by<T>(end: Instant, call: impl Future<Output = Result<T>>) -> Result<T> {
    within(end.saturating_duration_since(Instant::now()) + ANSWER, "wait", call).await
}
