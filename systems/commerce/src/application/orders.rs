//! Orders and their payments.

use crate::application::ports::{Answer, Refusal, Unit, Units};
use crate::domain::event::{OrderPaidEventV1, StockDepletedEventV1};
use crate::domain::{DomainEvent, Line, OrderId, PaymentId, UserId, Won, order};

/// What a payment came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paid {
    /// The payment.
    pub payment_id: PaymentId,
    /// How much it was.
    pub amount: Won,
}

/// Takes an order.
pub async fn place(units: &impl Units, user: UserId, lines: &[Line]) -> Answer<OrderId> {
    if lines.is_empty() || lines.iter().any(|line| line.quantity < 1) {
        return Err(Refusal::Invalid("an order must have lines of at least one piece each".to_owned()));
    }
    let lines = order::sorted(lines).ok_or_else(too_many)?;
    let mut unit = units.begin().await?;
    let order = unit.add_order(user, &lines).await?;
    unit.commit().await?;
    Ok(order)
}

fn too_many() -> Refusal {
    Refusal::Invalid(format!("an order must not have more than {} pieces of a product", i32::MAX))
}

/// Pays an order: the payment, the stock that it takes and the events that say so are one commit. An order that is paid already
/// keeps its payment, and nothing is published again.
pub async fn pay(units: &impl Units, order: OrderId) -> Answer<Paid> {
    let mut unit = units.begin().await?;
    let found = unit.order(order).await?;
    let found = found.ok_or_else(|| Refusal::Missing(format!("there is no order {order}")))?;
    let amount = found.amount;
    if let Some(payment_id) = found.payment {
        return Ok(Paid { payment_id, amount });
    }
    let mut depleted = Vec::new();
    for line in order::sorted(&found.lines).ok_or_else(too_many)? {
        let product_id = line.product_id;
        match unit.take_stock(product_id, line.quantity).await? {
            None => {
                return Err(Refusal::Conflict(format!("there is not enough left of product {product_id}")));
            }
            Some(0) => depleted.push(product_id),
            Some(_) => {}
        }
    }
    let payment_id = unit.add_payment(order, amount).await?;
    unit.publish(DomainEvent::OrderPaid(OrderPaidEventV1 { order_id: order, payment_id, amount })).await?;
    for product_id in depleted {
        unit.publish(DomainEvent::StockDepleted(StockDepletedEventV1 { product_id })).await?;
    }
    unit.commit().await?;
    Ok(Paid { payment_id, amount })
}
