//! What the services need of the outside: a unit of work that keeps changes and events together, and a cache.

use std::error::Error;
use std::fmt;
use std::future::Future;

use crate::domain::{DomainEvent, Line, Order, OrderId, PaymentId, Product, ProductId, UserId, Won};

/// Why something was not done.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such thing.
    Missing(String),
    /// It can't be done as things are.
    Conflict(String),
    /// It could never be done: what was asked for breaks a rule.
    Invalid(String),
    /// Something outside failed.
    Failed(Box<dyn Error + Send + Sync>),
}

impl Refusal {
    /// A product that the shop does not have.
    pub fn no_product(product: ProductId) -> Self {
        Self::Missing(format!("there is no product {product}"))
    }

    /// An order that costs more than an amount can say.
    pub fn too_expensive() -> Self {
        Self::Invalid(format!("the order must not cost more than {} won", Won::MAX))
    }

    /// A failure of the outside.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) | Self::Conflict(what) | Self::Invalid(what) => f.write_str(what),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl Error for Refusal {}

/// A result, or why there is none.
pub type Answer<T> = Result<T, Refusal>;

/// Changes and the events that say so: all of it is kept, or nothing.
pub trait Unit: Send {
    /// Adds a product.
    fn add_product(
        &mut self,
        name: &str,
        price: Won,
        stock: i32,
    ) -> impl Future<Output = Answer<ProductId>> + Send;
    /// A product.
    fn product(&mut self, product: ProductId) -> impl Future<Output = Answer<Option<Product>>> + Send;
    /// Takes pieces of a product, and returns how many are left; nothing if there are not enough.
    fn take_stock(
        &mut self,
        product: ProductId,
        quantity: i32,
    ) -> impl Future<Output = Answer<Option<i32>>> + Send;
    /// Notes a like; whether it is new.
    fn add_like(&mut self, user: UserId, product: ProductId) -> impl Future<Output = Answer<bool>> + Send;
    /// Removes a like; whether there was one.
    fn remove_like(&mut self, user: UserId, product: ProductId) -> impl Future<Output = Answer<bool>> + Send;
    /// Notes that a user looked at a product.
    fn add_view(&mut self, product: ProductId, user: UserId) -> impl Future<Output = Answer<()>> + Send;
    /// Adds an order with the prices of now. One whose amount is more than can be said is refused.
    fn add_order(&mut self, user: UserId, lines: &[Line]) -> impl Future<Output = Answer<OrderId>> + Send;
    /// An order, locked.
    fn order(&mut self, order: OrderId) -> impl Future<Output = Answer<Option<Order>>> + Send;
    /// Adds the payment of an order.
    fn add_payment(&mut self, order: OrderId, amount: Won) -> impl Future<Output = Answer<PaymentId>> + Send;
    /// Publishes an event if the unit is kept.
    fn publish(&mut self, event: DomainEvent) -> impl Future<Output = Answer<()>> + Send;
    /// Keeps all of it. A unit that is dropped keeps nothing.
    fn commit(self) -> impl Future<Output = Answer<()>> + Send;
}

/// Where units of work come from.
pub trait Units: Send + Sync {
    /// One of them.
    type Unit: Unit;

    /// Begins one.
    fn begin(&self) -> impl Future<Output = Answer<Self::Unit>> + Send;
}

/// What shoppers see of products, kept close. It may forget anything at any time, and it answers or fails soon.
pub trait ProductCache: Send + Sync {
    /// What it has of a product.
    fn get(&self, product: ProductId) -> impl Future<Output = Answer<Option<Product>>> + Send;
    /// Keeps what is known of a product.
    fn put(&self, product: &Product) -> impl Future<Output = Answer<()>> + Send;
    /// Forgets a product.
    fn remove(&self, product: ProductId) -> impl Future<Output = Answer<()>> + Send;
}
