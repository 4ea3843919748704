//! The events of one key (or of a few), handled one after another.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{
    Attempt, Delivery, Effect, Error, ErrorKind, HeldKeys, OutboxSource, Outcome, Unavailable, Uuid,
};
use tracing::Instrument;

use crate::handlers::dispatcher::{Routes, Unknown};
use crate::handlers::failure::FailureClass;
use crate::handlers::route::{Reading, Route};
use crate::handlers::tx::Home;
use crate::observe::{line::line, metrics};
use crate::{Context, Failure, Tx};

/// Why a batch was not handled.
enum BatchError {
    /// One of them failed.
    Failed(Failure),
    /// Nothing can be handled now.
    Unavailable(Unavailable),
}

impl From<Failure> for BatchError {
    fn from(failure: Failure) -> Self {
        match failure.class {
            FailureClass::Wait => Self::Unavailable(Unavailable::new(failure.message())),
            _ => Self::Failed(failure),
        }
    }
}

/// What the database says when a handler's transaction can't be had: no event is to blame for that. Behind a broker there
/// is no lease, and nobody who waits for an operator: there, what is no outage counts as a failure, and ends as one.
fn not_begun(delivery: &Delivery, error: Error) -> BatchError {
    if delivery.lease.is_none() {
        return not_kept(error);
    }
    if error.kind() == ErrorKind::Invalid {
        return BatchError::Failed(Failure::from(error).code("database"));
    }
    BatchError::Unavailable(Unavailable::new(error.to_string()))
}

/// What the database says when a handler's transaction can't be kept: the handler may be what it objects to.
fn not_kept(error: Error) -> BatchError {
    match error.kind() {
        ErrorKind::Unreachable | ErrorKind::PoolExhausted => {
            BatchError::Unavailable(Unavailable::new(error.to_string()))
        }
        _ => BatchError::Failed(Failure::from(error).code("database")),
    }
}

/// Handles events in order and reports each; after a failure nothing more of its key.
pub(crate) async fn run<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    events: &[usize],
) -> Result<(), Unavailable> {
    let mut stopped = HeldKeys::new(delivery.order);
    let mut rest = events;
    while !rest.is_empty() {
        if delivery.is_stopping() {
            return Ok(());
        }
        let (batch, count) = max_tx_batch(routes, delivery, rest, &stopped);
        rest = &rest[count..];
        if batch.is_empty() {
            continue;
        }
        if !delivery.begin_all(&batch) {
            return Ok(());
        }
        let several = batch.len() > 1;
        if several && handle_batch(routes, delivery, &batch, &mut stopped).await? {
            continue;
        }
        for index in batch {
            // The batch failed as a whole: each of its events begins again, alone.
            if several && !delivery.begin(index) {
                return Ok(());
            }
            handle_alone(routes, delivery, index, &mut stopped).await?;
        }
    }
    Ok(())
}

/// Handles a batch in one call and reports each event. Returns false if it failed: then each event must be handled alone, which
/// shows the one that fails.
async fn handle_batch<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    batch: &[usize],
    stopped: &mut HeldKeys,
) -> Result<bool, Unavailable> {
    let outcomes = match handle(routes, delivery, batch).await {
        Ok(outcomes) => outcomes,
        Err(BatchError::Unavailable(unavailable)) => return Err(unavailable),
        Err(BatchError::Failed(failure)) => {
            let Attempt { event, attempt } = &delivery.events[batch[0]];
            line!(debug, delivery.subscription, event, attempt, "alone",
                { events = batch.len(), error = %failure, }, "the batch failed; retrying its events one by one");
            return Ok(false);
        }
    };
    for (&index, outcome) in batch.iter().zip(outcomes) {
        // It comes after a failure of its key, so it was not tried, whatever its outcome says.
        if !stopped.holds(&delivery.events[index].event) {
            note(routes, delivery, index, outcome, stopped);
        }
    }
    Ok(true)
}

/// Handles one event and reports it, unless an earlier one of its key has failed.
async fn handle_alone<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    index: usize,
    stopped: &mut HeldKeys,
) -> Result<(), Unavailable> {
    if stopped.holds(&delivery.events[index].event) {
        return Ok(());
    }
    let outcome = match handle(routes, delivery, &[index]).await {
        Ok(mut outcomes) => outcomes.pop().unwrap_or(Outcome::Delivered),
        Err(BatchError::Failed(failure)) => failure.into_outcome(),
        Err(BatchError::Unavailable(unavailable)) => return Err(unavailable),
    };
    note(routes, delivery, index, outcome, stopped);
    Ok(())
}

/// Reports what became of an event, and that nothing more of its key may be handled after a failure.
fn note<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    index: usize,
    outcome: Outcome,
    stopped: &mut HeldKeys,
) {
    if !outcome.is_delivered() {
        stopped.failed(&delivery.events[index].event);
    }
    report(routes, delivery, index, outcome);
}

/// Reports what became of an event; what a transaction did under a lease, as an effect.
fn report<S: OutboxSource>(routes: &Routes<S>, delivery: &Delivery, index: usize, outcome: Outcome) {
    let route = routes.find(&delivery.events[index].event.event_type);
    let in_transaction = delivery.lease.is_some() && route.is_some_and(|route| route.transactional);
    if in_transaction && outcome.is_delivered() {
        delivery.report_effect(index, outcome);
    } else {
        delivery.report(index, outcome);
    }
}

/// The batch at the front: the events that one call can handle, without those that are held; and how many were looked at.
fn max_tx_batch<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    events: &[usize],
    stopped: &HeldKeys,
) -> (Vec<usize>, usize) {
    let mut chosen: Vec<usize> = Vec::new();
    let mut kind: Option<&Arc<Route<S>>> = None;
    let mut looked = 0;
    for &index in events {
        let attempt = &delivery.events[index];
        if stopped.holds(&attempt.event) {
            looked += 1;
            continue;
        }
        let route = routes.find(&attempt.event.event_type);
        let goes_along = match (kind, route) {
            _ if chosen.is_empty() => true,
            (Some(first), Some(route)) if first.several => Arc::ptr_eq(first, route),
            (Some(first), Some(route)) => {
                first.transactional
                    && route.transactional
                    && !route.several
                    && chosen.len() < routes.max_tx_batch
            }
            _ => false,
        };
        if !goes_along {
            break;
        }
        kind = kind.or(route);
        chosen.push(index);
        looked += 1;
        if kind.is_none() {
            break;
        }
    }
    (chosen, looked)
}

/// Handles a batch: an outcome for each event, or why none of them was handled.
async fn handle<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    events: &[usize],
) -> Result<Vec<Outcome>, BatchError> {
    let attempts: Vec<&Attempt> = events.iter().map(|&index| &delivery.events[index]).collect();
    let Some(first) = attempts.first() else { return Ok(Vec::new()) };
    let Some(route) = routes.find(&first.event.event_type) else {
        return Ok(vec![match routes.unknown {
            Unknown::Skip => Outcome::Delivered,
            Unknown::Reject => {
                let message = format!("there is no handler for {}", first.event.event_type);
                Failure::reject(message).code("unknown_type").into_outcome()
            }
        }]);
    };
    if route.transactional {
        in_transaction(routes, delivery, &attempts).await
    } else if routes.inbox {
        with_inbox(routes, delivery, route, &attempts).await
    } else {
        call(routes, delivery, route, &attempts, None).await
    }
}

/// Calls a handler, in a span of its own and within its time.
async fn call<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    route: &Route<S>,
    events: &[&Attempt],
    transaction: Option<Tx<S>>,
) -> Result<Vec<Outcome>, BatchError> {
    let Some(first) = events.first() else { return Ok(Vec::new()) };
    let event = &first.event;
    let context = Context {
        event: Arc::clone(event),
        attempt: first.attempt,
        subscription: Arc::clone(&delivery.subscription),
        recorder: Arc::clone(&routes.recorder),
    };
    let span = tracing::info_span!("handle", subscription = %delivery.subscription,
        trace_id = event.headers.traceparent().unwrap_or_default(), event_id = %event.event_id, stream = %event.stream,
        event_type = %event.event_type, aggregate_type = %event.aggregate_type, aggregate_id = %event.aggregate_id,
        attempt = first.attempt);
    let began = Instant::now();
    // An upcaster, or a type that is decoded, is the application's code, too. What its panic says may quote the payload.
    let reading = Reading { upcasters: &routes.upcasters, newer_version: routes.newer_version };
    let called = AssertUnwindSafe(|| route.call(events, reading, context, transaction));
    let handled = std::panic::catch_unwind(called).unwrap_or_else(|_| {
        Err(Failure::retry("an upcaster or the decoding of the payload panicked").code("panic"))
    })?;
    let timeout = route.timeout.unwrap_or(delivery.timeout);
    let answered = tokio::time::timeout(timeout, handled.instrument(span)).await;
    let seconds = route.seconds.get_or_init(|| metrics::handler_seconds(&delivery.subscription, &route.name));
    seconds.record(began.elapsed().as_secs_f64());
    let answers = answered.unwrap_or_else(|_| {
        let message = format!("the handler took longer than {timeout:?}");
        Err(Failure::retry(message).code("timeout"))
    })?;
    let Some(answers) = answers else { return Ok(vec![Outcome::Delivered; events.len()]) };
    if answers.len() != events.len() {
        let message = format!("the handler returned {} results for {} events", answers.len(), events.len());
        return Err(Failure::retry(message).code("answers").into());
    }
    let outcome =
        |answer: Result<(), Failure>| answer.map_or_else(Failure::into_outcome, |()| Outcome::Delivered);
    Ok(answers.into_iter().map(outcome).collect())
}

/// Handles events in one transaction with their marks in the inbox.
async fn in_transaction<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    events: &[&Attempt],
) -> Result<Vec<Outcome>, BatchError> {
    let ids: Vec<Uuid> = events.iter().map(|each| each.event.event_id).collect();
    // The database must not end what one of the handlers may still take.
    let timeouts = events.iter().filter_map(|each| routes.find(&each.event.event_type)?.timeout);
    let effect = Effect {
        lease: delivery.lease.as_ref(),
        consumer: &delivery.subscription,
        events: &ids,
        timeout: timeouts.fold(delivery.timeout, Duration::max),
    };
    let begun = routes.source.begin(effect).await;
    let (mut transaction, first_time) = begun.map_err(|error| not_begun(delivery, error))?;
    let new: Vec<&Attempt> =
        events.iter().zip(&first_time).filter(|(_, first)| **first).map(|(each, _)| *each).collect();
    let mut answers = Vec::with_capacity(new.len());
    let mut rest = new.as_slice();
    while let Some(first) = rest.first() {
        let Some(route) = routes.find(&first.event.event_type) else { break };
        let count = if route.several { rest.len() } else { 1 };
        let (these, others) = rest.split_at(count);
        rest = others;
        let home = Home::new();
        let cause = (these.len() == 1).then(|| Arc::clone(&first.event));
        let consumer = Arc::clone(&delivery.subscription);
        let tx = Tx::new(routes.source.clone(), transaction, home.clone(), consumer, cause);
        let outcomes = call(routes, delivery, route, these, Some(tx)).await?;
        let Some(back) = home.take() else {
            let message = "the handler kept its transaction; it must drop it before it returns";
            return Err(Failure::retry(message).code("transaction").into());
        };
        transaction = back;
        // A handler of several that does not deliver one of them delivers none: they share the transaction, and its marks.
        if outcomes.iter().any(|outcome| !outcome.is_delivered()) {
            if events.len() == 1 {
                S::rollback(transaction).await.map_err(not_kept)?;
                return Ok(outcomes);
            }
            return Err(Failure::retry("another event in the same transaction failed").into());
        }
        answers.extend(outcomes);
    }
    S::commit(transaction).await.map_err(not_kept)?;
    let mut answers = answers.into_iter();
    let outcome =
        |first: &bool| if *first { answers.next().unwrap_or(Outcome::Delivered) } else { Outcome::Duplicate };
    Ok(first_time.iter().map(outcome).collect())
}

/// Handles what is not in the inbox yet, and marks it afterwards.
async fn with_inbox<S: OutboxSource>(
    routes: &Routes<S>,
    delivery: &Delivery,
    route: &Route<S>,
    events: &[&Attempt],
) -> Result<Vec<Outcome>, BatchError> {
    let consumer = &delivery.subscription;
    let ids: Vec<Uuid> = events.iter().map(|each| each.event.event_id).collect();
    let handled = routes.source.handled(consumer, &ids).await.map_err(|error| not_begun(delivery, error))?;
    let new: Vec<&Attempt> =
        events.iter().zip(&handled).filter(|(_, handled)| !**handled).map(|(each, _)| *each).collect();
    let answers = if new.is_empty() { Vec::new() } else { call(routes, delivery, route, &new, None).await? };
    let mut stopped = HeldKeys::new(delivery.order);
    let mut done: Vec<&Attempt> = Vec::with_capacity(new.len());
    for (each, answer) in new.iter().zip(&answers) {
        if !answer.is_delivered() {
            stopped.failed(&each.event);
        } else if !stopped.holds(&each.event) {
            done.push(each);
        }
    }
    if !done.is_empty() {
        let ids: Vec<Uuid> = done.iter().map(|each| each.event.event_id).collect();
        let effect = Effect { lease: None, consumer, events: &ids, timeout: delivery.timeout };
        let marked = async {
            let (transaction, _) = routes.source.begin(effect).await?;
            S::commit(transaction).await
        };
        // The handler has succeeded; without its mark it may be called again if the event comes again, which is what an
        // inbox of this kind can't rule out.
        if let Err(error) = marked.await {
            for Attempt { event, attempt } in done {
                line!(warn, consumer, event, attempt, "delivered", { error = %error, },
                    "handled, but could not be marked in the inbox");
            }
        }
    }
    let mut answers = answers.into_iter();
    let outcome = |handled: &bool| {
        if *handled { Outcome::Duplicate } else { answers.next().unwrap_or(Outcome::Delivered) }
    };
    Ok(handled.iter().map(outcome).collect())
}
