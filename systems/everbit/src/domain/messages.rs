//! The messages: commands in the imperative, events in the past tense.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::order::{Side, identifier};
use crate::domain::streams::{BACKTEST_COMMAND, BACKTEST_EVENT, SYSTEM_EVENT, TRADE_COMMAND, TRADE_EVENT};

/// A command or an event, without a word on how it travels.
pub trait Message: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its stream.
    const STREAM: &'static str;
    /// The kind of thing that it is about.
    const AGGREGATE: &'static str;
    /// How often it is tried before it is dead.
    const MAX_ATTEMPTS: u32 = 10;
    /// The id of the thing that it is about.
    fn aggregate_id(&self) -> String;
}

/// Place the order of an intent, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateOrderAttempt {
    /// The intent.
    pub order_intent_id: Uuid,
    /// 1 for the first attempt. Another number is another attempt, with another identifier.
    pub attempt_no: i32,
}

impl CreateOrderAttempt {
    /// What the exchange knows the order by.
    pub fn identifier(&self) -> String {
        identifier(self.order_intent_id, self.attempt_no)
    }
}

impl Message for CreateOrderAttempt {
    const NAME: &'static str = "CreateOrderAttempt";
    const STREAM: &'static str = TRADE_COMMAND;
    const AGGREGATE: &'static str = "OrderIntent";

    fn aggregate_id(&self) -> String {
        self.order_intent_id.to_string()
    }
}

/// The exchange has the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderAccepted {
    /// The intent.
    pub order_intent_id: Uuid,
    /// The attempt.
    pub attempt_no: i32,
    /// What the exchange knows the order by.
    pub identifier: String,
    /// The id that the exchange gave it.
    pub order_id: String,
}

impl Message for OrderAccepted {
    const NAME: &'static str = "OrderAccepted";
    const STREAM: &'static str = TRADE_EVENT;
    const AGGREGATE: &'static str = "OrderIntent";

    fn aggregate_id(&self) -> String {
        self.order_intent_id.to_string()
    }
}

/// The order was executed, all of it or a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderFilled {
    /// The intent.
    pub order_intent_id: Uuid,
    /// What the exchange knows the order by.
    pub identifier: String,
    /// Buy or sell.
    pub side: Side,
    /// How much was executed since the last time, in units of 1e-8.
    pub volume: i64,
    /// How much of it was executed so far, this included. 0 in events of a version that did not say it.
    #[serde(default)]
    pub executed: i64,
    /// At what price, in KRW.
    pub price: i64,
}

impl Message for OrderFilled {
    const NAME: &'static str = "OrderFilled";
    const STREAM: &'static str = TRADE_EVENT;
    const AGGREGATE: &'static str = "OrderIntent";

    fn aggregate_id(&self) -> String {
        self.order_intent_id.to_string()
    }
}

/// Run a strategy over candles of the past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunBacktest {
    /// The job.
    pub job_id: Uuid,
    /// The candles.
    pub market: String,
}

impl Message for RunBacktest {
    const NAME: &'static str = "RunBacktest";
    const STREAM: &'static str = BACKTEST_COMMAND;
    const AGGREGATE: &'static str = "BacktestJob";
    const MAX_ATTEMPTS: u32 = 5;

    fn aggregate_id(&self) -> String {
        self.job_id.to_string()
    }
}

/// A backtest has a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BacktestFinished {
    /// The job.
    pub job_id: Uuid,
    /// How many candles were read.
    pub candles: usize,
    /// Gain or loss, in KRW.
    pub profit: i64,
}

impl Message for BacktestFinished {
    const NAME: &'static str = "BacktestFinished";
    const STREAM: &'static str = BACKTEST_EVENT;
    const AGGREGATE: &'static str = "BacktestJob";

    fn aggregate_id(&self) -> String {
        self.job_id.to_string()
    }
}

/// The kill switch was turned on or off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KillSwitchChanged {
    /// Whether no order may be placed.
    pub engaged: bool,
}

impl KillSwitchChanged {
    /// The setting, which is also the key of the record where the stream is a compacted topic.
    pub const SETTING: &'static str = "kill_switch";
}

impl Message for KillSwitchChanged {
    const NAME: &'static str = "KillSwitchChanged";
    const STREAM: &'static str = SYSTEM_EVENT;
    const AGGREGATE: &'static str = "Setting";

    fn aggregate_id(&self) -> String {
        Self::SETTING.to_owned()
    }
}

/// An order was sent although its attempt had been given up: the exchange has it, or may have it. An operator must look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StrayOrderSent {
    /// The intent.
    pub order_intent_id: Uuid,
    /// The attempt.
    pub attempt_no: i32,
    /// What the exchange knows the order by.
    pub identifier: String,
    /// The id that the exchange gave it, if it said one.
    pub order_id: Option<String>,
}

impl Message for StrayOrderSent {
    const NAME: &'static str = "StrayOrderSent";
    const STREAM: &'static str = SYSTEM_EVENT;
    const AGGREGATE: &'static str = "OrderIntent";

    fn aggregate_id(&self) -> String {
        self.order_intent_id.to_string()
    }
}

/// The names of all messages.
pub const ALL: [&str; 7] = [
    CreateOrderAttempt::NAME,
    OrderAccepted::NAME,
    OrderFilled::NAME,
    RunBacktest::NAME,
    BacktestFinished::NAME,
    KillSwitchChanged::NAME,
    StrayOrderSent::NAME,
];
