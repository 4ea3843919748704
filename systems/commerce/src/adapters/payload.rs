//! The payloads as JSON: the second envelope's content, which the domain does not know.

use serde::{Deserialize, Serialize};

/// Of `loopers.order.paid.v1`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderPaid {
    /// Which order.
    pub order_id: i64,
    /// By which payment.
    pub payment_id: i64,
    /// How much.
    pub amount: i64,
}

/// Of `loopers.like.created.v1` and `loopers.like.canceled.v1`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Like {
    /// Who.
    pub user_id: i64,
    /// What.
    pub product_id: i64,
}

/// Of `loopers.product.viewed.v1`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProductViewed {
    /// What.
    pub product_id: i64,
    /// Who.
    pub user_id: i64,
}

/// Of `loopers.stock.depleted.v1`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StockDepleted {
    /// What.
    pub product_id: i64,
}
