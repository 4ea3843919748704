//! A product, as a shopper sees it.

use crate::domain::{ProductId, Won};

/// A product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// Its number.
    pub id: ProductId,
    /// What it is called.
    pub name: String,
    /// What one of it costs.
    pub price: Won,
    /// Whether there is any left.
    pub available: bool,
}
