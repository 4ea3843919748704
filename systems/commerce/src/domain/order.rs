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
pub fn sorted(lines: &[Line]) -> Vec<Line> {
    let mut sorted: Vec<Line> = Vec::new();
    let mut each: Vec<&Line> = lines.iter().collect();
    each.sort_by_key(|line| line.product_id);
    for line in each {
        match sorted.last_mut() {
            Some(last) if last.product_id == line.product_id => last.quantity += line.quantity,
            _ => sorted.push(line.clone()),
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_product_are_one_line_and_products_are_in_order() {
        let line = |product_id, quantity| Line { product_id, quantity };
        assert_eq!(sorted(&[line(7, 1), line(3, 2), line(7, 4)]), [line(3, 2), line(7, 5)]);
    }
}
