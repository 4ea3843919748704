//! Messages as events of Postrider, and back.

use postrider::{NewEvent, Recorded};

use crate::application::Fault;
use crate::domain::{
    About, BacktestFinished, CreateOrderAttempt, KillSwitchChanged, Message, OrderAccepted, OrderFilled,
    RunBacktest, StrayOrderSent,
};

/// The headers that hold what the envelope says besides Postrider's own.
pub const OWNER: &str = "owner";
/// The strategy.
pub const STRATEGY: &str = "strategy";
/// The market.
pub const MARKET: &str = "market";

macro_rules! events {
    ($($message:ident),+) => {
        $(impl postrider::Event for $message {
            const NAME: &'static str = <Self as Message>::NAME;
            const STREAM: &'static str = <Self as Message>::STREAM;
            const AGGREGATE: &'static str = <Self as Message>::AGGREGATE;

            fn aggregate_id(&self) -> String {
                Message::aggregate_id(self)
            }
        })+
    };
}

events!(
    CreateOrderAttempt,
    OrderAccepted,
    OrderFilled,
    RunBacktest,
    BacktestFinished,
    KillSwitchChanged,
    StrayOrderSent
);

/// The event of a message: the payload is the message, everything else of the envelope is a header.
pub fn new_event<M: Message>(message: &M, about: &About) -> postrider::Result<NewEvent> {
    let id = message.aggregate_id();
    let mut event = NewEvent::of(M::STREAM, M::NAME, M::AGGREGATE, id, message)?
        .with_header(OWNER, &about.owner)
        .with_header(STRATEGY, &about.strategy)
        .with_header(MARKET, &about.market)
        .max_attempts(M::MAX_ATTEMPTS);
    event.headers.set_schema_version(1);
    event.headers.set_traceparent(about.trace.as_str());
    if let Some(cause) = about.cause {
        event.headers.set_causation_id(cause);
    }
    Ok(event)
}

/// What an event says besides its payload, for what follows from it.
pub fn about(event: &Recorded) -> About {
    let header = |name: &str| event.headers.get(name).unwrap_or_default().to_owned();
    About {
        owner: header(OWNER),
        strategy: header(STRATEGY),
        market: header(MARKET),
        trace: event.headers.traceparent().unwrap_or_default().to_owned(),
        cause: Some(event.event_id),
    }
}

impl From<postrider::Error> for Fault {
    fn from(error: postrider::Error) -> Self {
        match error.kind() {
            postrider::ErrorKind::Invalid => Self::Invalid(error.message().to_owned()),
            _ => Self::Retry(error.to_string()),
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        // The class of wrong data: a number out of its range, a text that can't be kept. The message may quote the value.
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        match code.filter(|code| code.len() == 5 && code.starts_with("22")) {
            Some(code) => Self::Invalid(format!("the database can't keep a value of it (SQLSTATE {code})")),
            None => Self::Retry(format!("the database did not do it: {error}")),
        }
    }
}
