//! The operators' commands: one module for each noun. They look through [`Store`](postrider::store::Store) and
//! [`Store`](postrider::store::Store), and know no database.

mod attempts;
pub(crate) mod audit;
pub(crate) mod catalog;
pub(crate) mod dead;
pub(crate) mod dead_letters;
pub(crate) mod deliveries;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod page;
mod payload;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod relays;
pub(crate) mod replay;
pub(crate) mod sinks;
pub(crate) mod status;
pub(crate) mod subscriptions;
pub(crate) mod times;
pub(crate) mod unknown;
