//! The engine of Postrider: for each subscription *claim a lane, read, deliver, settle*; and the dispatcher that gives events
//! to typed handlers. It names no database and no broker: those are a [`Source`](postrider_core::Source) and a
//! [`Sink`](postrider_core::Sink).
//!
//! The way of a batch is in `lane`; what follows from an outcome is decided in `retry_policy`; who holds which lane in `lane_manager`.

mod away;
mod beside;
mod bounded;
mod breaker;
mod context;
mod contrast;
mod death;
mod decode;
mod deliver;
mod dispatcher;
mod due_schedule;
mod failure;
mod flight;
mod gauges;
mod handler;
mod handler_batch;
mod lane;
mod lane_manager;
mod lines;
mod metrics;
mod pace;
mod portion;
mod presence;
mod received;
mod relay;
mod retry_policy;
mod route;
mod runtime;
mod stats;
mod subscriber;
mod suspect;
mod tx;
mod undecided;
mod upcast;
pub mod wait;
mod work;

pub use bounded::Bounded;
pub use context::Context;
pub use death::Death;
pub use decode::{Decode, Raw};
pub use dispatcher::{Dispatcher, DispatcherBuilder, Unknown};
pub use failure::Failure;
pub use handler::{Answer, Answered, Answers, Argument, Handle, HandleWithin, Handler};
pub use lines::Lines;
pub use metrics::{Kind, METRICS, Metric};
pub use pace::Pace;
pub use presence::Health;
pub use received::Received;
pub use relay::{Relay, Running, asked_to_end};
pub use retry_policy::WhileUnavailable;
pub use subscriber::Subscriber;
pub use tx::Tx;
pub use upcast::Upcasters;
