//! The products, as shoppers look at them.

use crate::application::ports::{Answer, ProductCache, Refusal, Unit, Units};
use crate::domain::event::ProductViewedEventV1;
use crate::domain::{DomainEvent, Product, ProductId, UserId, Won};

/// Adds a product.
pub async fn add(units: &impl Units, name: &str, price: Won, stock: i32) -> Answer<ProductId> {
    if price < 0 || stock < 0 {
        return Err(Refusal::Invalid("the price and the stock of a product must be 0 or more".to_owned()));
    }
    if name.contains('\0') {
        return Err(Refusal::Invalid("the name of a product must not contain a NUL character".to_owned()));
    }
    let mut unit = units.begin().await?;
    let product = unit.add_product(name, price, stock).await?;
    unit.commit().await?;
    Ok(product)
}

/// Shows a product to a user, from the cache if it is there. That somebody looked counts in either case.
///
/// A cache that fails is one that has forgotten: it takes no page down. It is asked before the transaction begins and told after it has
/// ended, so no transaction waits for it.
pub async fn view(
    units: &impl Units,
    cache: &impl ProductCache,
    product_id: ProductId,
    user_id: UserId,
) -> Answer<Product> {
    let cached = cache.get(product_id).await.unwrap_or_default();
    let is_new = cached.is_none();
    let mut unit = units.begin().await?;
    let product = match cached {
        Some(product) => product,
        None => {
            let product = unit.product(product_id).await?;
            product.ok_or_else(|| Refusal::no_product(product_id))?
        }
    };
    unit.add_view(product_id, user_id).await?;
    unit.publish(DomainEvent::ProductViewed(ProductViewedEventV1 { product_id, user_id })).await?;
    unit.commit().await?;
    if is_new {
        // The next one who looks asks again.
        let _ = cache.put(&product).await;
    }
    Ok(product)
}
