//! A Kafka of one's own, whose brokers may be stopped, killed and paused.
//!
//! A [`Broker`] is one server, a [`Cluster`] several. Where the program comes from is in [`kit`] and [`java`], what
//! is in a broker's folder in [`node`], [`properties`] and [`tls`], its process in [`daemon`], what is asked of it
//! while it runs in [`topics`] and [`acls`].

pub mod acls;
pub mod broker;
pub mod cluster;
pub mod daemon;
pub mod java;
pub mod kit;
pub mod node;
pub mod options;
pub mod properties;
pub mod tls;
pub mod topics;
pub mod wire;

pub use broker::Broker;
pub use cluster::Cluster;
pub use options::{Listener, Options};
