//! The four workers: the same handlers behind the log of the database, or behind topics of Kafka.

use std::time::Duration;

use postrider::kafka::{Consumer, RunningConsumer};
use postrider::store::Source;
use postrider::{Failure, Order, Received, Recorded, Relay, Retry, Running};

use crate::adapters::bus::Kind;
use crate::adapters::events::about;
use crate::adapters::exchange::HttpExchange;
use crate::adapters::now;
use crate::adapters::push::WebPush;
use crate::adapters::settings::Settings;
use crate::adapters::steps::Halt;
use crate::application::{Answer, Backtests, Desk, Executor, Fault, Notices, Operations, Reconciler};
use crate::domain::streams::{BACKTEST, NOTIFICATION, ORDER_EXECUTOR, SYSTEM, WORKERS};
use crate::domain::{CreateOrderAttempt, KillSwitchChanged, OrderAccepted, OrderFilled, RunBacktest};

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

impl<D: Desk> Services<D> {
    /// With the adapters of the settings.
    pub fn new(desk: &D, settings: &Settings) -> Self {
        let exchange = HttpExchange::new(&settings.exchange, settings.timeout);
        let grace = i64::try_from(settings.grace.as_millis()).unwrap_or(i64::MAX);
        Self {
            executor: Executor::new(desk.clone(), exchange.clone(), Halt::from_environment()),
            notices: Notices::new(desk.clone(), WebPush::new(&settings.push)),
            backtests: Backtests::new(desk.clone(), exchange.clone()),
            operations: Operations::new(desk.clone()),
            reconciler: Reconciler::new(desk.clone(), exchange, grace),
        }
    }
}

/// Commands: after 0.5 s, doubled up to a minute, give or take 20 %.
pub fn command_retry() -> Retry {
    Retry::exponential().base(Duration::from_millis(500)).factor(2.0).max(Duration::from_secs(60)).jitter(0.2)
}

/// Everything else: after 1 s, doubled up to five minutes, give or take 20 %.
pub fn event_retry() -> Retry {
    Retry::exponential().base(Duration::from_secs(1)).factor(2.0).max(Duration::from_secs(300)).jitter(0.2)
}

/// One line on an event, with the fields that the document asks for; and the failure by its class.
fn processed(event: &Recorded, worker: &str, answer: Answer<()>) -> Result<(), Failure> {
    let trace = event.headers.traceparent().unwrap_or_default();
    let trace_id = trace.split('-').nth(1).filter(|id| id.len() == 32).unwrap_or(trace);
    let outcome = match &answer {
        Ok(()) => "done",
        Err(Fault::Retry(_)) => "retry",
        Err(Fault::Reject(_)) => "reject",
    };
    tracing::info!(traceId = trace_id, eventId = %event.event_id, stream = %event.stream, eventType = %event.event_type,
        aggregateType = %event.aggregate_type, aggregateId = %event.aggregate_id, worker, outcome, "processed");
    answer.map_err(|fault| match fault {
        Fault::Retry(message) => Failure::retry(message).code("retryable"),
        Fault::Reject(message) => Failure::reject(message).code("not_retryable"),
    })
}

/// Adds a handler to a subscription or to a consumer: `|event, service| answer`.
macro_rules! handle {
    ($builder:expr, $worker:ident, $message:ty, $service:expr, |$event:ident, $with:ident| $answer:expr) => {{
        let service = $service.clone();
        $builder.on(move |$event: Received<$message>| {
            let $with = service.clone();
            async move {
                let answer = $answer;
                processed($event.event(), $worker, answer.map(drop))
            }
        })
    }};
}

/// The handlers of a worker, on a subscription or on a consumer.
macro_rules! handlers {
    ($builder:expr, $worker:expr, $services:expr) => {{
        let (builder, services) = ($builder, $services);
        match $worker {
            ORDER_EXECUTOR => {
                handle!(builder, ORDER_EXECUTOR, CreateOrderAttempt, services.executor, |event, with| {
                    with.execute(event.event().event_id, &event, now()).await
                })
            }
            NOTIFICATION => {
                let builder =
                    handle!(builder, NOTIFICATION, OrderAccepted, services.notices, |event, with| {
                        let text = format!("The order {} was accepted", event.identifier);
                        with.tell(event.event().event_id, &text, now()).await
                    });
                handle!(builder, NOTIFICATION, OrderFilled, services.notices, |event, with| {
                    let text = format!("The order {} was filled", event.identifier);
                    with.tell(event.event().event_id, &text, now()).await
                })
            }
            BACKTEST => handle!(builder, BACKTEST, RunBacktest, services.backtests, |event, with| {
                let about = about(event.event());
                with.run(&event, &about, now()).await
            }),
            _ => handle!(builder, SYSTEM, KillSwitchChanged, services.operations, |event, with| {
                with.note(event.event().event_id, &event, now()).await
            }),
        }
    }};
}

/// The workers of this process on the log of the database.
pub fn relay<S: Source, D: Desk>(source: &S, services: &Services<D>, settings: &Settings) -> Relay<S> {
    let mut relay = Relay::new(source)
        .lease(settings.lease)
        .poll_interval(Duration::from_secs(1))
        .figures_every(Some(Duration::from_secs(5)));
    if let Some(name) = &settings.name {
        relay = relay.owner(name);
    }
    for (worker, stream) in WORKERS.into_iter().filter(|(worker, _)| settings.has(worker)) {
        relay = relay.subscribe(worker, |subscriber| {
            let subscriber = subscriber.streams([stream]).batch(100).retry(event_retry());
            // What is done is done: neither orders nor notices of orders may be repeated.
            let subscriber = subscriber.replay(!matches!(worker, ORDER_EXECUTOR | NOTIFICATION));
            let subscriber = if worker == ORDER_EXECUTOR {
                // Commands are independent of each other, so none waits for another one.
                subscriber.lanes(settings.lanes).order(Order::None).retry(command_retry())
            } else {
                subscriber
            };
            handlers!(subscriber, worker, services)
        });
    }
    relay
}

/// The workers of this process on topics of Kafka, each a group of its own.
pub fn consumers<S: Source, D: Desk>(
    source: &S,
    services: &Services<D>,
    settings: &Settings,
) -> Vec<Consumer<S>> {
    let prefix = &settings.topic_prefix;
    let workers = WORKERS.into_iter().filter(|(worker, _)| settings.has(worker));
    workers
        .map(|(worker, stream)| {
            let consumer = Consumer::new(source, &settings.brokers, &format!("{prefix}{worker}"));
            let consumer = consumer.topics([format!("{prefix}{stream}")]);
            handlers!(consumer, worker, services)
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
    pub async fn start<S: Source, D: Desk>(
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

/// Asks the exchange again and again what became of orders.
pub async fn reconcile<D: Desk>(services: Services<D>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match services.reconciler.round(now()).await {
            Ok(round) if round != crate::application::Reconciled::default() => {
                tracing::info!(
                    found = round.found,
                    not_found = round.not_found,
                    filled = round.filled,
                    "reconciled"
                );
            }
            Ok(_) => {}
            Err(fault) => tracing::warn!(error = %fault, "could not reconcile; the next round tries again"),
        }
    }
}
