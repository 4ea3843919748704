//! The four workers: the same handlers behind the log of the database, or behind topics of Kafka.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use postrider::kafka::{Consumer, RunningConsumer};
use postrider::store::OutboxSource;
use postrider::{Failure, Order, Received, Recorded, Relay, Retry, Running};

use crate::adapters::bus::Kind;
use crate::adapters::events::about;
use crate::adapters::exchange::HttpExchange;
use crate::adapters::now;
use crate::adapters::push::WebPush;
use crate::adapters::settings::Settings;
use crate::adapters::steps::Halt;
use crate::application::{
    Answer, Backtests, Executed, Executor, Fault, Notices, Operations, Reconciled, Reconciler, Transactions,
};
use crate::domain::streams::{BACKTEST, NOTIFICATION, ORDER_EXECUTOR, SYSTEM, WORKERS};
use crate::domain::{
    CreateOrderAttempt, KillSwitchChanged, OrderAccepted, OrderFilled, RunBacktest, StrayOrderSent,
};

/// The services behind the handlers.
#[derive(Clone)]
pub struct Services<D> {
    /// Places orders.
    pub executor: Executor<D, HttpExchange, Halt>,
    /// Tells the owner.
    pub notices: Notices<D, WebPush>,
    /// Runs backtests.
    pub backtests: Backtests<D, HttpExchange>,
    /// Keeps what operators did.
    pub operations: Operations<D>,
    /// Asks what became of orders.
    pub reconciler: Reconciler<D, HttpExchange>,
}

impl<D: Transactions> Services<D> {
    /// With the adapters of the settings.
    pub fn new(transactions: &D, settings: &Settings) -> Self {
        let exchange = HttpExchange::new(&settings.exchange, settings.timeout);
        let grace = i64::try_from(settings.grace.as_millis()).unwrap_or(i64::MAX);
        Self {
            executor: Executor::new(transactions.clone(), exchange.clone(), Halt::from_environment()),
            notices: Notices::new(transactions.clone(), WebPush::new(&settings.push)),
            backtests: Backtests::new(transactions.clone(), exchange.clone()),
            operations: Operations::new(transactions.clone()),
            reconciler: Reconciler::new(transactions.clone(), exchange, grace),
        }
    }
}

/// When a failed event of a worker is tried again.
pub fn retry(worker: &str, settings: &Settings) -> Retry {
    if worker == ORDER_EXECUTOR { settings.command_retry.clone() } else { settings.event_retry.clone() }
}

/// A fault as a failure of this bus, by its class.
fn failure(fault: Fault, bus: Kind) -> Failure {
    match (fault, bus) {
        (Fault::Retry(message), _) => Failure::retry(message).code("retryable"),
        // A message may be here before its transaction is committed. One that is rolled back never gets there.
        (Fault::Missing(message), Kind::Kafka) => {
            let message = format!("{message}: its transaction was rolled back, or is not committed yet");
            Failure::retry(message).code("missing")
        }
        (Fault::Reject(message) | Fault::Invalid(message) | Fault::Missing(message), _) => {
            Failure::reject(message).code("not_retryable")
        }
    }
}

/// One line on an event, with the fields that the document asks for; and the failure by its class.
fn processed(event: &Recorded, worker: &str, bus: Kind, answer: Answer<()>) -> Result<(), Failure> {
    let trace = event.headers.traceparent().unwrap_or_default();
    let trace_id = trace.split('-').nth(1).filter(|id| id.len() == 32).unwrap_or(trace);
    let outcome = match (&answer, bus) {
        (Ok(()), _) => "done",
        (Err(Fault::Retry(_)), _) | (Err(Fault::Missing(_)), Kind::Kafka) => "retry",
        (Err(_), _) => "reject",
    };
    tracing::info!(traceId = trace_id, eventId = %event.event_id, stream = %event.stream, eventType = %event.event_type,
        aggregateType = %event.aggregate_type, aggregateId = %event.aggregate_id, worker, outcome, "processed");
    answer.map_err(|fault| failure(fault, bus))
}

/// Tells operators of an order that nobody expects.
fn told(executed: Executed) {
    if let Executed::Stray(StrayOrderSent { identifier, order_id, .. }) = executed {
        let order_id = order_id.as_deref().unwrap_or("unknown");
        tracing::error!(
            identifier,
            order_id,
            "an order was sent after it was given up: look at the exchange"
        );
    }
}

/// Adds a handler to a subscription or to a consumer: `|event, service| answer`.
macro_rules! handle {
    ($builder:expr, $worker:ident, $bus:ident, $message:ty, $service:expr, |$event:ident, $with:ident| $answer:expr) => {{
        let (service, bus) = ($service.clone(), $bus);
        $builder.on(move |$event: Received<$message>| {
            let $with = service.clone();
            async move {
                let answer = $answer;
                processed($event.event(), $worker, bus, answer.map(drop))
            }
        })
    }};
}

/// The handlers of a worker, on a subscription or on a consumer.
macro_rules! handlers {
    ($builder:expr, $worker:expr, $bus:expr, $services:expr) => {{
        let (builder, bus, services) = ($builder, $bus, $services);
        match $worker {
            ORDER_EXECUTOR => {
                handle!(builder, ORDER_EXECUTOR, bus, CreateOrderAttempt, services.executor, |event, with| {
                    with.execute(event.event().event_id, &event, now()).await.map(told)
                })
            }
            NOTIFICATION => {
                let builder =
                    handle!(builder, NOTIFICATION, bus, OrderAccepted, services.notices, |event, with| {
                        let text = format!("The order {} was accepted", event.identifier);
                        with.tell(event.event().event_id, &text, now()).await
                    });
                handle!(builder, NOTIFICATION, bus, OrderFilled, services.notices, |event, with| {
                    // Each part has a notice, and says something else.
                    let text = format!(
                        "Of the order {}, {} were filled, {} so far",
                        event.identifier, event.volume, event.executed
                    );
                    with.tell(event.event().event_id, &text, now()).await
                })
            }
            BACKTEST => handle!(builder, BACKTEST, bus, RunBacktest, services.backtests, |event, with| {
                let about = about(event.event());
                with.run(&event, &about, now()).await
            }),
            _ => {
                let builder =
                    handle!(builder, SYSTEM, bus, KillSwitchChanged, services.operations, |event, with| {
                        with.note(event.event().event_id, &event, now()).await
                    });
                handle!(builder, SYSTEM, bus, StrayOrderSent, services.operations, |event, with| {
                    with.note_stray(event.event().event_id, &event, now()).await
                })
            }
        }
    }};
}

/// The workers of this process on the log of the database.
pub fn relay<S: OutboxSource, D: Transactions>(
    source: &S,
    services: &Services<D>,
    settings: &Settings,
) -> Relay<S> {
    let mut relay = Relay::new(source)
        .lease(settings.lease)
        .poll_interval(Duration::from_secs(1))
        .figures_every(Some(Duration::from_secs(5)));
    if let Some(name) = &settings.name {
        relay = relay.owner(name);
    }
    for (worker, stream) in WORKERS.into_iter().filter(|(worker, _)| settings.has(worker)) {
        relay = relay.subscribe(worker, |subscriber| {
            let subscriber =
                subscriber.streams([stream]).batch(settings.batch).retry(retry(worker, settings));
            // What is done is done: neither orders nor notices of orders may be repeated.
            let subscriber = subscriber.replay(!matches!(worker, ORDER_EXECUTOR | NOTIFICATION));
            let subscriber = if worker == ORDER_EXECUTOR {
                // Commands are independent of each other, so none waits for another one.
                subscriber.lanes(settings.lanes).order(Order::None)
            } else {
                subscriber
            };
            handlers!(subscriber, worker, Kind::Outbox, services)
        });
    }
    relay
}

/// The workers of this process on topics of Kafka, each a group of its own.
pub fn consumers<S: OutboxSource, D: Transactions>(
    source: &S,
    services: &Services<D>,
    settings: &Settings,
) -> Vec<Consumer<S>> {
    let prefix = &settings.topic_prefix;
    let workers = WORKERS.into_iter().filter(|(worker, _)| settings.has(worker));
    workers
        .map(|(worker, stream)| {
            let consumer = Consumer::new(source, &settings.brokers, &format!("{prefix}{worker}"));
            let consumer =
                consumer.topics([format!("{prefix}{stream}")]).records_per_poll(settings.batch as usize);
            // The records behind a failed one wait, so it has fewer attempts than in the queue.
            let consumer = consumer.retry(retry(worker, settings).max_attempts(settings.kafka_attempts));
            let consumer = consumer.wait_for_brokers(Duration::MAX);
            handlers!(consumer, worker, Kind::Kafka, services)
        })
        .collect()
}

/// What runs in a worker's process.
pub enum Workers {
    /// Behind the log.
    Relay(Running),
    /// Behind Kafka.
    Consumers(Vec<RunningConsumer>),
}

impl Workers {
    /// Starts the workers behind the bus of the settings.
    pub async fn start<S: OutboxSource, D: Transactions>(
        source: &S,
        services: &Services<D>,
        settings: &Settings,
    ) -> postrider::Result<Self> {
        if settings.bus == Kind::Outbox {
            return Ok(Self::Relay(relay(source, services, settings).start().await?));
        }
        let mut running = Vec::new();
        for consumer in consumers(source, services, settings) {
            running.push(consumer.start().await?);
        }
        Ok(Self::Consumers(running))
    }

    /// Completes when one of them has ended although nobody stopped it: nobody does its work from then on.
    pub async fn failed(&mut self) -> postrider::Error {
        match self {
            Self::Relay(running) => running.failed().await,
            Self::Consumers(consumers) => {
                let mut all: Vec<_> =
                    consumers.iter_mut().map(|consumer| Box::pin(consumer.failed())).collect();
                poll_fn(|context| {
                    let mut polled = all.iter_mut().map(|failed| failed.as_mut().poll(context));
                    polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
                })
                .await
            }
        }
    }

    /// Stops them: what is under way is finished.
    pub async fn stop(self) -> postrider::Result<()> {
        match self {
            Self::Relay(running) => running.stop().await,
            Self::Consumers(consumers) => {
                for consumer in consumers {
                    consumer.stop().await?;
                }
                Ok(())
            }
        }
    }
}

/// One line on what a round found, and one on what it could not do.
fn say(round: &Reconciled) {
    let Reconciled { found, not_found, filled, failed } = round;
    if found + not_found + filled > 0 {
        tracing::info!(found, not_found, filled, "reconciled");
    }
    if let Some((identifier, fault)) = failed.first() {
        let attempts = failed.len();
        tracing::warn!(attempts, identifier, error = %fault, "could not reconcile some attempts; the next round tries again");
    }
}

/// Asks the exchange again and again what became of orders.
pub async fn reconcile<D: Transactions>(services: Services<D>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match services.reconciler.round(now()).await {
            Ok(round) => say(&round),
            Err(fault) => tracing::warn!(error = %fault, "could not reconcile; the next round tries again"),
        }
    }
}
