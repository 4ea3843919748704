//! The settings of the processes, from the environment. What belongs to Postrider's program is in `everbit.toml`.

use std::env;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use postrider::Retry;

use crate::adapters::bus::Kind;

/// Where everything is, and how long it may take.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `DATABASE_URL`: `postgres://…` or `sqlite:…`.
    pub database: String,
    /// `EVERBIT_BUS`: `outbox` or `kafka`.
    pub bus: Kind,
    /// `EVERBIT_BROKERS`, for `kafka`.
    pub brokers: String,
    /// `EVERBIT_TOPIC_PREFIX`: in front of topics and groups, where several everbits share a cluster.
    pub topic_prefix: String,
    /// `EXCHANGE_URL`.
    pub exchange: String,
    /// `PUSH_URL`.
    pub push: String,
    /// `EVERBIT_WORKERS`: which workers this process has; all unless set.
    pub workers: Vec<String>,
    /// `EVERBIT_NAME`: the name of this process in leases.
    pub name: Option<String>,
    /// `EVERBIT_LANES`: how many processes can share the stream of order commands.
    pub lanes: u32,
    /// `EVERBIT_LEASE_MS`: after how long the work of a process that died is taken up.
    pub lease: Duration,
    /// `EVERBIT_BATCH`: how many events a worker takes at once.
    pub batch: u32,
    /// `EVERBIT_COMMAND_RETRY`, as in `base=500ms, max=1m`: when a failed command to trade is tried again.
    pub command_retry: Retry,
    /// `EVERBIT_RETRY`: the same of everything else.
    pub event_retry: Retry,
    /// `EVERBIT_KAFKA_ATTEMPTS`: how often an event is tried behind Kafka before it is a dead letter.
    pub kafka_attempts: u32,
    /// `EVERBIT_TIMEOUT_MS`: how long the exchange may take to answer.
    pub timeout: Duration,
    /// `EVERBIT_RECONCILE_MS`: how often the exchange is asked what became of orders.
    pub reconcile_every: Duration,
    /// `EVERBIT_GRACE_MS`: after how long an order that the exchange does not know is given up.
    pub grace: Duration,
}

impl Settings {
    /// Those of a database and a bus; the rest as it is unless set.
    pub fn of(database: &str, bus: Kind) -> Self {
        Self {
            database: database.to_owned(),
            bus,
            brokers: "127.0.0.1:9092".to_owned(),
            topic_prefix: String::new(),
            exchange: "http://127.0.0.1:8081".to_owned(),
            push: "http://127.0.0.1:8082".to_owned(),
            workers: Vec::new(),
            name: None,
            lanes: 4,
            lease: Duration::from_secs(30),
            batch: 100,
            // Doubled each time, give or take 20 %.
            command_retry: Retry::exponential().base(Duration::from_millis(500)).max(Duration::from_secs(60)),
            event_retry: Retry::exponential().base(Duration::from_secs(1)).max(Duration::from_secs(250)),
            kafka_attempts: 6,
            timeout: Duration::from_secs(3),
            reconcile_every: Duration::from_secs(5),
            grace: Duration::from_secs(60),
        }
    }

    /// Reads them from the environment.
    pub fn read() -> Result<Self, String> {
        Self::from(&|name| env::var(name).ok())
    }

    /// Reads them by their names.
    pub fn from(given: Given<'_>) -> Result<Self, String> {
        let milliseconds = |name, default: Duration| {
            let usual = u64::try_from(default.as_millis()).unwrap_or(u64::MAX);
            value(given, name, usual).map(Duration::from_millis)
        };
        let database = given("DATABASE_URL").ok_or("DATABASE_URL must be set")?;
        let usual = Self::of(&database, Kind::Outbox);
        let settings = Self {
            bus: value(given, "EVERBIT_BUS", usual.bus)?,
            brokers: value(given, "EVERBIT_BROKERS", usual.brokers)?,
            topic_prefix: value(given, "EVERBIT_TOPIC_PREFIX", usual.topic_prefix)?,
            exchange: value(given, "EXCHANGE_URL", usual.exchange)?,
            push: value(given, "PUSH_URL", usual.push)?,
            workers: names(&value(given, "EVERBIT_WORKERS", String::new())?),
            name: given("EVERBIT_NAME"),
            lanes: value(given, "EVERBIT_LANES", usual.lanes)?,
            lease: milliseconds("EVERBIT_LEASE_MS", usual.lease)?,
            batch: value(given, "EVERBIT_BATCH", usual.batch)?,
            command_retry: value(given, "EVERBIT_COMMAND_RETRY", usual.command_retry)?,
            event_retry: value(given, "EVERBIT_RETRY", usual.event_retry)?,
            kafka_attempts: value(given, "EVERBIT_KAFKA_ATTEMPTS", usual.kafka_attempts)?,
            timeout: milliseconds("EVERBIT_TIMEOUT_MS", usual.timeout)?,
            reconcile_every: milliseconds("EVERBIT_RECONCILE_MS", usual.reconcile_every)?,
            grace: milliseconds("EVERBIT_GRACE_MS", usual.grace)?,
            database: usual.database,
        };
        settings.check()?;
        Ok(settings)
    }

    /// Refuses what would let nothing be done, or an order be given up while it is on its way, and unknown workers.
    pub fn check(&self) -> Result<(), String> {
        if self.batch == 0 || self.kafka_attempts == 0 {
            return Err("EVERBIT_BATCH and EVERBIT_KAFKA_ATTEMPTS must be at least 1".to_owned());
        }
        if self.grace < self.timeout * 2 {
            return Err(
                "EVERBIT_GRACE_MS must be at least twice EVERBIT_TIMEOUT_MS: an order that is on its way \
                        must not be given up"
                    .to_owned(),
            );
        }
        let known = crate::domain::streams::WORKERS.map(|(name, _)| name);
        match self.workers.iter().find(|name| !known.contains(&name.as_str())) {
            Some(name) => {
                Err(format!("EVERBIT_WORKERS: {name} is unknown; the workers are {}", known.join(", ")))
            }
            None => Ok(()),
        }
    }

    /// Whether this process has a worker.
    pub fn has(&self, worker: &str) -> bool {
        self.workers.is_empty() || self.workers.iter().any(|name| name == worker)
    }
}

/// The value of a name, if it is set.
type Given<'a> = &'a dyn Fn(&str) -> Option<String>;

fn names(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn value<T: FromStr<Err: Display>>(given: Given<'_>, name: &str, default: T) -> Result<T, String> {
    match given(name) {
        Some(text) => text.parse().map_err(|error| format!("{name} has a value that can't be read: {error}")),
        None => Ok(default),
    }
}
