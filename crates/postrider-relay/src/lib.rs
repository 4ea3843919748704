//! The engine of Postrider: for each subscription *claim a lane, read, deliver, settle*; and the dispatcher that gives events
//! to typed handlers. It names no database and no broker: those are a [`OutboxSource`](postrider_core::OutboxSource) and a
//! [`Sink`](postrider_core::Sink).

#[expect(
    unused_extern_crates,
    reason = "links in the docs of `handler_methods!`, which stand in this crate and in others"
)]
extern crate self as postrider_relay;

mod bounded;
pub mod defaults;
mod engine;
mod handlers;
mod lines;
mod observe;
mod relay;
mod running;
mod subscriber;
mod subscriber_info;
pub mod wait;

pub use bounded::Bounded;
pub use engine::pace::Pace;
pub use engine::retry_policy::WhileUnavailable;
pub use handlers::context::Context;
pub use handlers::decode::{Decode, Raw};
pub use handlers::dispatcher::{Dispatcher, DispatcherBuilder, HandlerInfo, Unknown};
pub use handlers::failure::Failure;
pub use handlers::handler::{
    Argument, CallResult, Handle, HandleWithin, Handler, HandlerResult, HandlerResults,
};
pub use handlers::received::Received;
pub use handlers::tx::Tx;
pub use handlers::upcast::{NewerVersion, Upcasters};
pub use lines::Lines;
pub use observe::death::Death;
pub use observe::metrics::{Kind, METRICS, Metric};
pub use observe::presence::Health;
pub use relay::Relay;
pub use running::{Running, asked_to_end};
pub use subscriber::Subscriber;
pub use subscriber_info::SubscriberInfo;
