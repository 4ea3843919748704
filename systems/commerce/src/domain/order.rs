//! An order: what a user wants, and whether it is paid.

use crate::domain::{OrderId, PaymentId, ProductId, Won};

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What.
    pub product_id: ProductId,
    /// How many.
    pub quantity: i32,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its number.
    pub id: OrderId,
    /// What it costs.
    pub amount: Won,
    /// Its payment, once there is one.
    pub payment: Option<PaymentId>,
    /// What was ordered.
    pub lines: Vec<Line>,
}

/// The lines of an order, one for each product and in the order of their numbers: whoever locks products locks them in this order.
/// Nothing if the pieces of a product are more than a line can say.
pub fn sorted(lines: &[Line]) -> Option<Vec<Line>> {
    let mut sorted: Vec<Line> = Vec::new();
    let mut each: Vec<&Line> = lines.iter().collect();
    each.sort_by_key(|line| line.product_id);
    for line in each {
        match sorted.last_mut() {
            Some(last) if last.product_id == line.product_id => {
                last.quantity = last.quantity.checked_add(line.quantity)?;
            }
            _ => sorted.push(line.clone()),
        }
    }
    Some(sorted)
}

/// What lines cost, each a quantity and a price. Nothing if it is more than an amount can say.
pub fn amount(lines: &[(i32, Won)]) -> Option<Won> {
    lines.iter().try_fold(0, |sum: Won, (quantity, price)| {
        price.checked_mul(i64::from(*quantity)).and_then(|cost| sum.checked_add(cost))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_product_are_one_line_and_products_are_in_order() {
        let line = |product_id, quantity| Line { product_id, quantity };
        assert_eq!(sorted(&[line(7, 1), line(3, 2), line(7, 4)]), Some(vec![line(3, 2), line(7, 5)]));
        assert_eq!(sorted(&[line(7, i32::MAX), line(3, 2), line(7, 1)]), None, "more than a line can say");
    }

    #[test]
    fn an_amount_is_whole_or_there_is_none() {
        assert_eq!(amount(&[(2, 1500), (1, 4000)]), Some(7000));
        assert_eq!(amount(&[(1, Won::MAX)]), Some(Won::MAX));
        assert_eq!(amount(&[(2, Won::MAX)]), None, "a line is too much");
        assert_eq!(amount(&[(1, Won::MAX), (1, 1)]), None, "the sum is too much");
    }
}
