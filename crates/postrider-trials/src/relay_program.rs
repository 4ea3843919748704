//! What the program does: its relay, its handlers.

use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use postrider::kafka::Kafka;
use postrider::{Context, Failure, Received, Relay, Result, Retry, Subscriber, Tx, asked_to_end};

use crate::gate::{Gate, Gated, say};
use crate::relay_options::{Point, Poison, RelayOptions};
use crate::test_store::{Sight, TestStore};
use crate::{EFFECTS, KAFKA, Moved, Noted, PLAIN};

/// What both handlers need.
struct Handlers<G> {
    test_store: G,
    options: RelayOptions,
    gate: Arc<Gate>,
}

/// Runs until the process is asked to end, and stops then.
pub async fn run<G: TestStore>(test_store: G, options: RelayOptions) -> Result<()> {
    let gate = Gate::new(options.stand.clone());
    let outbox = Gated::new(test_store.outbox(), &gate);
    let handlers = Arc::new(Handlers { test_store, options: options.clone(), gate });
    let (plain, effects) = (Arc::clone(&handlers), handlers);
    let see = move |event: Received<Moved>, context: Context| {
        let handlers = Arc::clone(&plain);
        async move { handlers.see(&event, &context).await }
    };
    let apply = move |event: Received<Moved>, tx: Tx<Gated<G::Outbox>>| {
        let handlers = Arc::clone(&effects);
        async move { handlers.apply(&event, tx).await }
    };
    // Asked once already, so that a signal finds somebody who listens from now on.
    let mut end = pin!(asked_to_end());
    tokio::select! { biased; () = &mut end => return Ok(()), () = std::future::ready(()) => {} }
    let relay = Relay::new(&outbox)
        .owner(&options.name)
        .lease(options.lease)
        .shutdown_grace(options.grace)
        .figures_every(None);
    let relay = if options.brokers.is_empty() {
        let plain =
            |s| if options.inbox { as_wanted(s, &options).inbox() } else { as_wanted(s, &options) }.on(see);
        let effects = |s| as_wanted(s, &options).max_tx_batch(options.max_tx_batch as usize).on(apply);
        relay.subscribe(PLAIN, plain).subscribe(EFFECTS, effects)
    } else {
        // So short that what is in hand comes to its end within the lease.
        let sink = Kafka::builder(&options.brokers).send_timeout(options.lease * 2 / 5).connect().await?;
        relay.subscribe(KAFKA, |s| as_wanted(s, &options).sink(sink))
    };
    let relay = relay.start().await?;
    say("ready");
    end.await;
    relay.stop().await
}

fn as_wanted<S: postrider::store::OutboxSource>(
    subscriber: Subscriber<S>,
    options: &RelayOptions,
) -> Subscriber<S> {
    // A broken connection in a handler is that event's failure: it must neither wait for long nor be given up.
    let retry = Retry::fixed(Duration::from_millis(50)).max_attempts(1000);
    let subscriber = subscriber.streams(["moves"]).lanes(options.lanes).batch(options.batch).concurrency(4);
    subscriber
        .timeout(options.timeout)
        .patience(options.patience)
        .max_deaths(options.deaths)
        .retry(retry)
        .longest_pause(Duration::from_millis(500))
}

impl<G: TestStore> Handlers<G> {
    async fn see(&self, event: &Received<Moved>, context: &Context) -> Result<(), Failure> {
        self.swallow(event, PLAIN);
        let slow = event.version % i64::from(self.options.slow_one_in.max(1)) == 0;
        let late = event.poison && self.poison_of(PLAIN) == Some(Poison::Late);
        if !self.options.slow.is_zero() && (slow || late) {
            tokio::time::sleep(self.options.slow).await;
        }
        if late {
            std::process::abort();
        }
        let sight = Sight {
            at: 0,
            event: event.event().event_id,
            number: event.event().id,
            account: event.account.clone(),
            version: event.version,
            attempt: context.attempt().into(),
            relay_process: self.options.name.clone(),
        };
        self.test_store.see(&sight).await?;
        self.gate.pass(Point::Handling, PLAIN).await;
        Ok(())
    }

    async fn apply(&self, event: &Received<Moved>, mut tx: Tx<Gated<G::Outbox>>) -> Result<(), Failure> {
        self.swallow(event, EFFECTS);
        self.test_store.apply(&mut tx, event.event().event_id, event).await?;
        tx.record(&Noted { account: event.account.clone(), version: event.version }).await?;
        self.gate.pass(Point::Handling, EFFECTS).await;
        Ok(())
    }

    /// Ends the process if the event is poison here.
    fn swallow(&self, event: &Moved, subscription: &str) {
        match self.poison_of(subscription) {
            Some(Poison::Abort) if event.poison => std::process::abort(),
            Some(Poison::Overflow) if event.poison => {
                black_box(descend(black_box(1)));
            }
            _ => {}
        }
    }

    fn poison_of(&self, subscription: &str) -> Option<Poison> {
        let (wanted, poison) = self.options.poison.as_ref()?;
        (wanted == subscription).then_some(*poison)
    }
}

/// Calls itself until the stack is full.
fn descend(depth: u64) -> u64 {
    let ballast = black_box([depth; 64]);
    if black_box(depth) == 0 { 0 } else { descend(depth + 1) + ballast[1] }
}
