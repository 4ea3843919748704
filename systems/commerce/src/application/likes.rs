//! Likes: a user has one of a product, or none.

use crate::application::ports::{Answer, Refusal, Unit, Units};
use crate::domain::event::{LikeCanceledEventV1, LikeCreatedEventV1};
use crate::domain::{DomainEvent, ProductId, UserId};

/// A user likes a product, if there is one. A second time says nothing new, and publishes nothing.
pub async fn like(units: &impl Units, user_id: UserId, product_id: ProductId) -> Answer<()> {
    let mut unit = units.begin().await?;
    if unit.add_like(user_id, product_id).await? {
        unit.publish(DomainEvent::LikeCreated(LikeCreatedEventV1 { user_id, product_id })).await?;
    } else if unit.product(product_id).await?.is_none() {
        return Err(Refusal::no_product(product_id));
    }
    unit.commit().await
}

/// A user takes a like back.
pub async fn unlike(units: &impl Units, user_id: UserId, product_id: ProductId) -> Answer<()> {
    let mut unit = units.begin().await?;
    if unit.remove_like(user_id, product_id).await? {
        unit.publish(DomainEvent::LikeCanceled(LikeCanceledEventV1 { user_id, product_id })).await?;
    }
    unit.commit().await
}
