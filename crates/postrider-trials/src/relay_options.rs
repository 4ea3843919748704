//! The options of a relay: written by a test, read by the relay's process.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Where a relay can be made to stand still, to be killed or frozen exactly there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// A lane was claimed; the engine does not know yet.
    Claimed,
    /// A handler's transaction is about to begin.
    Beginning,
    /// In a handler that has done its work; a transactional one has not committed it.
    Handling,
    /// A batch was delivered; it is about to be settled.
    Delivered,
    /// The statement that settles a batch is under way.
    Settling,
    /// A batch is settled; the engine does not know yet.
    Settled,
    /// A batch was settled, and the answer is lost: the engine is told that the connection broke. Nothing stands still.
    BatchUnanswered,
    /// The same for what became of single deliveries.
    DeliveryUnanswered,
}

const POINTS: [(Point, &str); 8] = [
    (Point::Claimed, "claimed"),
    (Point::Beginning, "beginning"),
    (Point::Handling, "handling"),
    (Point::Delivered, "delivered"),
    (Point::Settling, "settling"),
    (Point::Settled, "settled"),
    (Point::BatchUnanswered, "batch-unanswered"),
    (Point::DeliveryUnanswered, "delivery-unanswered"),
];

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = POINTS.iter().find(|(point, _)| point == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = POINTS.iter().find(|(_, name)| *name == text).map(|(point, _)| *point);
        found.ok_or_else(|| format!("{text} is no point"))
    }
}

/// Stand still at the `nth` time a subscription comes to a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stand {
    /// The point.
    pub point: Point,
    /// The subscription.
    pub subscription: String,
    /// Which time, counted from 1.
    pub nth: u32,
}

/// How a poisonous event ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poison {
    /// It calls for the end at once.
    Abort,
    /// It calls itself until the stack is full.
    Overflow,
    /// It calls for the end when it has been handled for as long as a slow one takes.
    Late,
}

const POISONS: [(Poison, &str); 3] =
    [(Poison::Abort, "abort"), (Poison::Overflow, "overflow"), (Poison::Late, "late")];

/// The options of a relay.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// Its name, and its relay's.
    pub name: String,
    /// The database: the address of a PostgreSQL server, or the path of an SQLite file.
    pub store: String,
    /// The schema, on PostgreSQL.
    pub schema: String,
    /// How long its leases last.
    pub lease: Duration,
    /// How many events it reads at once.
    pub batch: u32,
    /// How many lanes each subscription has.
    pub lanes: u32,
    /// How long its plain handler takes.
    pub slow: Duration,
    /// For one version in so many; the others take no time.
    pub slow_one_in: u32,
    /// How long a batch waits at most for its last events.
    pub patience: Duration,
    /// How long a handler may take.
    pub timeout: Duration,
    /// How long what is in flight may take to end when it stops.
    pub grace: Duration,
    /// After how many deaths of a process an event is dead.
    pub deaths: u32,
    /// How many events may share a transaction.
    pub max_tx_batch: u32,
    /// Whether its plain handler keeps an inbox.
    pub inbox: bool,
    /// The Kafka that its events go to, instead of its handlers; empty if there is none.
    pub brokers: String,
    /// Where it is to stand still.
    pub stand: Option<Stand>,
    /// Which subscription's handler a poisonous event ends, and how.
    pub poison: Option<(String, Poison)>,
}

impl RelayOptions {
    /// The options that most trials want.
    pub fn new(name: &str, store: &str, schema: &str) -> Self {
        Self {
            name: name.to_owned(),
            store: store.to_owned(),
            schema: schema.to_owned(),
            lease: Duration::from_secs(5),
            batch: 16,
            lanes: 1,
            slow: Duration::ZERO,
            slow_one_in: 1,
            patience: Duration::from_secs(1),
            timeout: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            deaths: 3,
            max_tx_batch: 1,
            inbox: false,
            brokers: String::new(),
            stand: None,
            poison: None,
        }
    }

    /// The arguments that say all of it.
    pub fn to_arguments(&self) -> Vec<String> {
        let millis = |time: Duration| time.as_millis().to_string();
        let stand = self
            .stand
            .as_ref()
            .map(|at| format!("{}:{}:{}", at.point, at.subscription, at.nth))
            .unwrap_or_default();
        let poison = self.poison.as_ref().map_or_else(String::new, |(subscription, poison)| {
            let name = POISONS.iter().find(|(each, _)| each == poison).map_or("", |(_, name)| name);
            format!("{subscription}:{name}")
        });
        vec![
            self.name.clone(),
            self.store.clone(),
            self.schema.clone(),
            millis(self.lease),
            self.batch.to_string(),
            self.lanes.to_string(),
            millis(self.slow),
            self.slow_one_in.to_string(),
            millis(self.patience),
            millis(self.timeout),
            millis(self.grace),
            self.deaths.to_string(),
            self.max_tx_batch.to_string(),
            self.inbox.to_string(),
            self.brokers.clone(),
            stand,
            poison,
        ]
    }

    /// What [`to_arguments`](Self::to_arguments) said.
    pub fn from_arguments(arguments: &[String]) -> Result<Self, String> {
        let [
            name,
            store,
            schema,
            lease,
            batch,
            lanes,
            slow,
            slow_one_in,
            patience,
            timeout,
            grace,
            deaths,
            together,
            inbox,
            brokers,
            stand,
            poison,
        ] = arguments
        else {
            return Err(format!("a relay_process takes 17 arguments, not {}", arguments.len()));
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("{text} is no number"));
        let millis = |text: &str| number(text).map(|millis| Duration::from_millis(millis.into()));
        let stand = match stand.split(':').collect::<Vec<_>>()[..] {
            [point, subscription, nth] => Some(Stand {
                point: point.parse()?,
                subscription: subscription.to_owned(),
                nth: number(nth)?,
            }),
            _ => None,
        };
        let poison = poison.split_once(':').and_then(|(subscription, name)| {
            let (poison, _) = POISONS.iter().find(|(_, each)| *each == name)?;
            Some((subscription.to_owned(), *poison))
        });
        Ok(Self {
            name: name.clone(),
            store: store.clone(),
            schema: schema.clone(),
            lease: millis(lease)?,
            batch: number(batch)?,
            lanes: number(lanes)?,
            slow: millis(slow)?,
            slow_one_in: number(slow_one_in)?,
            patience: millis(patience)?,
            timeout: millis(timeout)?,
            grace: millis(grace)?,
            deaths: number(deaths)?,
            max_tx_batch: number(together)?,
            inbox: inbox == "true",
            brokers: brokers.clone(),
            stand,
            poison,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_their_way_to_the_process() {
        let mut options = RelayOptions::new("r1", "postgres://here", "s");
        options.stand = Some(Stand { point: Point::Settling, subscription: "plain".into(), nth: 3 });
        options.brokers = "127.0.0.1:9092".into();
        options.poison = Some(("effects".into(), Poison::Overflow));
        let read = RelayOptions::from_arguments(&options.to_arguments()).expect("options");
        assert_eq!(format!("{read:?}"), format!("{options:?}"));
    }
}
