//! What the four consumers do with what they hear.

use std::future::Future;

use crate::application::ports::{Answer, ProductCache, Refusal};
use crate::domain::{Line, OrderId, ProductId, UserId, order};

/// Whether a user likes a product, as of a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikeState {
    /// Who.
    pub user_id: UserId,
    /// What.
    pub product_id: ProductId,
    /// Whether it is liked.
    pub liked: bool,
    /// Since when, in microseconds since 1970.
    pub since: i64,
}

/// The likes that are counted: one state for each user and product.
pub trait LikeStates: Send {
    /// Keeps these states, each unless a newer one is known.
    fn keep(&mut self, states: &[LikeState]) -> impl Future<Output = Answer<()>> + Send;
}

/// What was sold, by product.
pub trait Sales: Send {
    /// What was ordered. The event does not say it.
    fn lines(&mut self, order: OrderId) -> impl Future<Output = Answer<Vec<Line>>> + Send;
    /// Adds to what was sold.
    fn add(&mut self, line: &Line) -> impl Future<Output = Answer<()>> + Send;
}

/// How often products were looked at.
pub trait Views: Send {
    /// Adds one.
    fn add(&mut self, product: ProductId) -> impl Future<Output = Answer<()>> + Send;
}

/// Counts likes: keeps the newest state that each user has of each product. Twice is as good as once.
pub async fn count_likes(states: &[LikeState], likes: &mut impl LikeStates) -> Answer<()> {
    if states.is_empty() { Ok(()) } else { likes.keep(states).await }
}

/// Counts the pieces of a paid order. It must be called once for each payment.
pub async fn count_sales(order: OrderId, sales: &mut impl Sales) -> Answer<()> {
    let lines = sales.lines(order).await?;
    if lines.is_empty() {
        return Err(Refusal::Missing(format!("order {order} has no lines")));
    }
    let sorted = order::sorted(&lines);
    let sorted = sorted.ok_or_else(|| Refusal::Invalid(format!("order {order} has too many pieces")))?;
    for line in sorted {
        sales.add(&line).await?;
    }
    Ok(())
}

/// Counts a look at a product. It must be called once for each look.
pub async fn count_view(product: ProductId, views: &mut impl Views) -> Answer<()> {
    views.add(product).await
}

/// Forgets what is cached of a product that is sold out. Twice does no harm.
pub async fn forget(product: ProductId, cache: &impl ProductCache) -> Answer<()> {
    cache.remove(product).await
}
