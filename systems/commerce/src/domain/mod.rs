//! What the shop is about: products, orders, and the facts that others hear of.

pub mod event;
pub mod order;
pub mod product;

pub use event::DomainEvent;
pub use order::{Line, Order};
pub use product::Product;

/// The number of a product.
pub type ProductId = i64;
/// The number of an order.
pub type OrderId = i64;
/// The number of a payment.
pub type PaymentId = i64;
/// The number of a user.
pub type UserId = i64;
/// An amount of money, in won.
pub type Won = i64;
