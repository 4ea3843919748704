//! Typed handlers: how an event reaches a function of the application. The same code serves subscriptions and Kafka consumers.

pub(crate) mod context;
pub(crate) mod decode;
pub(crate) mod dispatcher;
pub(crate) mod failure;
mod failure_class;
pub(crate) mod handler;
pub(crate) mod handler_batch;
mod methods;
pub(crate) mod received;
pub(crate) mod route;
pub(crate) mod tx;
pub(crate) mod upcast;
