//! The five facts that the shop publishes. A fact says what happened; how it travels, under which name and to where is not its matter.

use crate::domain::{OrderId, PaymentId, ProductId, UserId, Won};

/// An order was paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderPaidEventV1 {
    /// Which order.
    pub order_id: OrderId,
    /// By which payment.
    pub payment_id: PaymentId,
    /// How much.
    pub amount: Won,
}

/// A user likes a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikeCreatedEventV1 {
    /// Who.
    pub user_id: UserId,
    /// What.
    pub product_id: ProductId,
}

/// A user does not like a product any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikeCanceledEventV1 {
    /// Who.
    pub user_id: UserId,
    /// What.
    pub product_id: ProductId,
}

/// A user looked at a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductViewedEventV1 {
    /// What.
    pub product_id: ProductId,
    /// Who.
    pub user_id: UserId,
}

/// The last piece of a product was sold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockDepletedEventV1 {
    /// What.
    pub product_id: ProductId,
}

/// Any of the five.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainEvent {
    /// An order was paid.
    OrderPaid(OrderPaidEventV1),
    /// A user likes a product.
    LikeCreated(LikeCreatedEventV1),
    /// A user does not like a product any more.
    LikeCanceled(LikeCanceledEventV1),
    /// A user looked at a product.
    ProductViewed(ProductViewedEventV1),
    /// The last piece of a product was sold.
    StockDepleted(StockDepletedEventV1),
}
