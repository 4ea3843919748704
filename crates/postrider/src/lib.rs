//! A transactional outbox.
//!
//! An application records an event in the transaction that changes its data, so that there is never one
//! without the other; Postrider delivers it, at least once and in order per aggregate. An event is written
//! once and never updated; a [subscription](Subscriber) is a position in that log.
//!
//! # Record in your transaction
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! use postrider::{Event, sqlite::Outbox};
//! use serde::Serialize;
//! use sqlx::SqlitePool;
//!
//! #[derive(Serialize, Event)]
//! #[event(aggregate = "Order", id = order, stream = "orders")]
//! struct OrderPaid {
//!     order: i64,
//! }
//!
//! async fn pay(outbox: &Outbox, order: i64) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut tx = outbox.begin().await?;
//!     sqlx::query("update orders set paid = true where id = $1").bind(order).execute(&mut *tx).await?;
//!     outbox.record(&mut tx, &OrderPaid { order }).await?;
//!     Ok(tx.commit().await?)
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let db = SqlitePool::connect("sqlite::memory:").await?;
//! let outbox = Outbox::migrated(&db).await?;
//! # sqlx::query("create table orders (id integer primary key, paid boolean not null)").execute(&db).await?;
//! # sqlx::query("insert into orders values (7, false)").execute(&db).await?;
//! pay(&outbox, 7).await?;
//! # let (paid,): (bool,) = sqlx::query_as("select paid from orders where id = 7").fetch_one(&db).await?;
//! # let log: Vec<(String, String, String, String)> =
//! #     sqlx::query_as("select stream, event_type, aggregate_type, aggregate_id from postrider_event")
//! #         .fetch_all(&db)
//! #         .await?;
//! # assert!(paid);
//! # assert_eq!(log, [("orders".into(), "OrderPaid".into(), "Order".into(), "7".into())]);
//! # Ok(())
//! # }
//! ```
//!
//! On PostgreSQL it is the same with the `Outbox` of the module `postgres`, a `PgPool`, and a transaction that
//! the pool begins; on MariaDB and MySQL with the module `mysql` and a `MySqlPool`.
//!
//! # Record after you lock or change the aggregate
//!
//! Then the events of an aggregate have the order of its changes. An event that is recorded first can
//! overtake the one of another transaction that holds the aggregate's lock. Where there is nothing to lock, an
//! event marked `sequenced` is in order anyway: recording it locks the counter of its ordering key.
//!
//! # What may happen twice
//!
//! Delivery is at least once. An event can be delivered again if:
//!
//! - a relay was killed after it had delivered the event and before it had settled it (at most the batches in flight);
//! - a relay was frozen for longer than its lease: another relay takes over and delivers the batch again;
//! - a broker took a message, and its answer was lost;
//! - a dump was restored;
//! - an operator asked for a replay.
//!
//! Nothing else repeats an event: neither a clean stop nor a change of the number of lanes does. A consumer that keeps an
//! inbox in its own transaction sees the effect of each event once in all of these cases, for as long as the inbox is kept.
//!
//! # Which mapping
//!
//! A domain struct becomes an event by a derive, by an implementation of [`trait@Event`] in an adapter module,
//! or, where the struct lives in another crate, by an [`EventMapping`] of the [`EventMappings`]. A [`NewEvent`] is made by hand.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `postgres` (default) | the module `postgres`: PostgreSQL 13 and later |
//! | `sqlite` (default) | the module `sqlite` |
//! | `mysql` | the module `mysql`: MariaDB 10.6 and later, MySQL 8.0.11 and later |
//! | `http` | the module `http`: a sink that posts CloudEvents to an endpoint |
//! | `kafka` | the module `kafka`: a sink that produces to Kafka, in plain text, with a password (PLAIN) or without |
//! | `kafka-tls` | TLS and SCRAM for it, by the OpenSSL of the machine |
//! | `kafka-tls-vendored` | the same with an OpenSSL of its own, which takes some minutes more to build |
//! | `catalog` | the module `catalog`: the events of a system as data, and whether a change breaks anyone |
//! | `testing` | the module `testing`: an outbox in memory, destinations that misbehave, `assert_recorded!` |
//!
//! # What it needs to build
//!
//! Rust 1.94 or later, and a C compiler: `sqlite` builds SQLite and `kafka` builds librdkafka (with `make`) from source. `kafka-tls`
//! needs the headers of OpenSSL and pkg-config (Debian: `libssl-dev pkg-config`); `kafka-tls-vendored` builds OpenSSL, with perl.

#![cfg_attr(docsrs, feature(doc_cfg))]

// What applications write events with.
pub use postrider_core::{
    Allowed, CloudEvents, Envelope, Event, EventBus, EventMapping, EventMappings, Headers, NewEvent,
    OptionalAttribute, Payload, Recorded, Trace,
};
pub use postrider_macros::Event;

// What they handle them with.
pub use postrider_core::{OnDead, Order, Retry, RetrySettings, Start, duration};
pub use postrider_relay::{
    Context, Death, Failure, Handle, HandleWithin, Health, NewerVersion, Raw, Received, Relay, Running,
    Subscriber, Tx, Unknown, Upcasters, WhileUnavailable, asked_to_end,
};

// What all of it speaks of.
pub use postrider_core::{Error, ErrorKind, OffsetDateTime, Result, Uuid};

/// The metrics of a relay: names, kinds, labels and descriptions.
pub mod metrics {
    pub use postrider_relay::{Kind, METRICS, Metric};
}

/// For those who write a store, a sink or a tool for operators: the contracts, and the types that they use.
///
/// A destination of your own implements [`Sink`](store::Sink). A database implements [`EventLog`](store::EventLog),
/// [`Inspect`](store::Inspect), [`Operate`](store::Operate) and [`Coordinate`](store::Coordinate), and passes the suite of
/// `postrider-conformance`.
pub mod store {
    pub use postrider_core::*;
    pub use postrider_relay::{
        Argument, Bounded, CallResult, Decode, Dispatcher, DispatcherBuilder, Handler, HandlerResult,
        HandlerResults, Lines, Pace, defaults, wait,
    };
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod failure;

#[cfg(feature = "testing")]
pub mod testing;

/// The code of the documents, compiled as it stands there.
#[cfg(all(
    doctest,
    feature = "http",
    feature = "kafka",
    feature = "postgres",
    feature = "sqlite",
    feature = "testing"
))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[cfg(feature = "catalog")]
    #[doc = include_str!("../../../docs/catalog.md")]
    struct CatalogPage;

    #[doc = include_str!("../../../docs/getting-started.md")]
    struct GettingStarted;

    #[doc = include_str!("../../../docs/handlers.md")]
    struct Handlers;

    #[doc = include_str!("../../../docs/http.md")]
    struct HttpPage;

    #[doc = include_str!("../../../docs/kafka.md")]
    struct KafkaPage;

    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;

    /// An event that is recorded need not be readable; one that is handled must be.
    ///
    /// ```compile_fail,E0277
    /// use postrider::{Event, Failure, Received, Relay};
    ///
    /// #[derive(serde::Serialize, Event)]
    /// #[event(aggregate = "Order", id = order)]
    /// struct OrderPaid {
    ///     order: i64,
    /// }
    ///
    /// async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> {
    ///     Ok(())
    /// }
    ///
    /// fn relay(outbox: &postrider::sqlite::Outbox) {
    ///     Relay::new(outbox).subscribe("receipts", |s| s.on(receipt));
    /// }
    /// ```
    struct HandledWithoutDeserialize;
}

/// The events of a system as data: which exist, who publishes and handles them, and whether a change breaks anyone.
#[cfg(feature = "catalog")]
pub mod catalog {
    pub use postrider_catalog::*;
}

/// Postrider to HTTP endpoints.
#[cfg(feature = "http")]
pub mod http {
    pub use postrider_http::*;
}

/// Postrider to Kafka.
#[cfg(feature = "kafka")]
pub mod kafka {
    pub use postrider_kafka::*;
}

/// Postrider on MariaDB and MySQL.
#[cfg(feature = "mysql")]
pub mod mysql {
    pub use postrider_mysql::*;

    /// The failure of a handler with this error of `sqlx`.
    ///
    /// | error | the failure |
    /// |---|---|
    /// | the connection broke, or there is none | [unavailable](postrider_relay::Failure::unavailable): nobody loses an attempt |
    /// | no connection became free in time, or the server accepts no more | the same |
    /// | the server is starting or shutting down | the same |
    /// | anything else | as `?` has it: [retried](postrider_relay::Failure::retry) by the policy |
    ///
    /// ```
    /// use postrider::mysql::{self, Tx};
    /// use postrider::{Event, Failure, Received};
    ///
    /// # #[derive(serde::Serialize, serde::Deserialize, Event)]
    /// # #[event(aggregate = "Order", id = order)]
    /// # struct OrderPaid { order: i64 }
    /// async fn book(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    ///     let booking = sqlx::query("insert into booking (order_id) values (?)").bind(event.order);
    ///     booking.execute(&mut *tx).await.map_err(mysql::failure)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn failure(error: sqlx_core::Error) -> postrider_relay::Failure {
        let away = postrider_mysql::away(&error);
        crate::failure::of_sqlx(error, away)
    }

    /// The transaction of a handler: its changes, its follow-ups and the inbox mark of the event commit together.
    ///
    /// ```
    /// use postrider::{Event, Failure, Received, mysql::Tx};
    ///
    /// # #[derive(serde::Serialize, serde::Deserialize, Event)]
    /// # #[event(aggregate = "Order", id = order)]
    /// # struct OrderPaid { order: i64 }
    /// async fn book(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    ///     let booking = sqlx::query("insert into booking (order_id) values (?)").bind(event.order);
    ///     booking.execute(&mut *tx).await?;
    ///     Ok(())
    /// }
    /// ```
    pub type Tx = postrider_relay::Tx<Outbox>;
}

/// Postrider on PostgreSQL.
#[cfg(feature = "postgres")]
pub mod postgres {
    pub use postrider_postgres::*;

    /// The failure of a handler with this error of `sqlx`.
    ///
    /// | error | the failure |
    /// |---|---|
    /// | the connection broke, or there is none | [unavailable](postrider_relay::Failure::unavailable): nobody loses an attempt |
    /// | no connection became free in time, or the server accepts no more | the same |
    /// | the server is starting or shutting down | the same |
    /// | anything else | as `?` has it: [retried](postrider_relay::Failure::retry) by the policy |
    ///
    /// ```
    /// use postrider::postgres::{self, Tx};
    /// use postrider::{Event, Failure, Received};
    ///
    /// # #[derive(serde::Serialize, serde::Deserialize, Event)]
    /// # #[event(aggregate = "Order", id = order)]
    /// # struct OrderPaid { order: i64 }
    /// async fn book(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    ///     let booking = sqlx::query("insert into booking (order_id) values ($1)").bind(event.order);
    ///     booking.execute(&mut *tx).await.map_err(postgres::failure)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn failure(error: sqlx_core::Error) -> postrider_relay::Failure {
        let away = postrider_postgres::away(&error);
        crate::failure::of_sqlx(error, away)
    }

    /// The transaction of a handler: its changes, its follow-ups and the inbox mark of the event commit together.
    ///
    /// ```
    /// use postrider::{Event, Failure, Received, postgres::Tx};
    ///
    /// # #[derive(serde::Serialize, serde::Deserialize, Event)]
    /// # #[event(aggregate = "Order", id = order)]
    /// # struct OrderPaid { order: i64 }
    /// async fn book(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    ///     let booking = sqlx::query("insert into booking (order_id) values ($1)").bind(event.order);
    ///     booking.execute(&mut *tx).await?;
    ///     Ok(())
    /// }
    /// ```
    pub type Tx = postrider_relay::Tx<Outbox>;
}

/// Postrider on SQLite.
#[cfg(feature = "sqlite")]
pub mod sqlite {
    pub use postrider_sqlite::*;

    /// The failure of a handler with this error of `sqlx`.
    ///
    /// | error | the failure |
    /// |---|---|
    /// | the connection broke, or there is none | [unavailable](postrider_relay::Failure::unavailable): nobody loses an attempt |
    /// | no connection became free in time, or the server accepts no more | the same |
    /// | the server is starting or shutting down | the same |
    /// | anything else | as `?` has it: [retried](postrider_relay::Failure::retry) by the policy |
    ///
    /// ```
    /// use postrider::sqlite::{self, Tx};
    /// use postrider::{Event, Failure, Received};
    ///
    /// # #[derive(serde::Serialize, serde::Deserialize, Event)]
    /// # #[event(aggregate = "Order", id = order)]
    /// # struct OrderPaid { order: i64 }
    /// async fn book(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    ///     let booking = sqlx::query("insert into booking (order_id) values (?)").bind(event.order);
    ///     booking.execute(&mut *tx).await.map_err(sqlite::failure)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn failure(error: sqlx_core::Error) -> postrider_relay::Failure {
        let away = postrider_sqlite::away(&error);
        crate::failure::of_sqlx(error, away)
    }

    /// The transaction of a handler: its changes, its follow-ups and the inbox mark of the event commit together.
    ///
    /// ```
    /// use postrider::{Event, Failure, Received, sqlite::Tx};
    ///
    /// # #[derive(serde::Serialize, serde::Deserialize, Event)]
    /// # #[event(aggregate = "Order", id = order)]
    /// # struct OrderPaid { order: i64 }
    /// async fn book(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    ///     let booking = sqlx::query("insert into booking (order_id) values (?)").bind(event.order);
    ///     booking.execute(&mut *tx).await?;
    ///     Ok(())
    /// }
    /// ```
    pub type Tx = postrider_relay::Tx<Outbox>;
}
