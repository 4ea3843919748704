//! The cache is a convenience: whatever happens to it, shoppers see products.

use std::time::Duration;

use commerce::adapters::cache::{self, HttpCache};
use commerce::application::catalogue;
use commerce::application::ports::{Answer, ProductCache};
use commerce::domain::{Product, ProductId};
use tokio::net::TcpListener;

use crate::world::World;

/// A cache that is away, that answers with an error, or that never answers takes no product page down; each look counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_fails_takes_no_product_page_down() {
    let world = World::new(&[]).await;
    let (units, product) = (world.units(), world.product(5).await);
    let broken = axum::Router::new().fallback(async || axum::http::StatusCode::INTERNAL_SERVER_ERROR);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let erring = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, broken).await });
    // It takes connections, and nobody reads from them.
    let hanging = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let caches =
        ["127.0.0.1:9".to_owned(), erring.to_string(), hanging.local_addr().expect("an address").to_string()];
    for (user, address) in (1..).zip(caches) {
        let cache = HttpCache::new(story::process::client(), &format!("http://{address}"));
        let look = catalogue::view(&units, &cache, product, user);
        let look = tokio::time::timeout(Duration::from_secs(10), look).await.expect("an answer in time");
        assert!(look.expect("the product").available, "{address}");
        assert_eq!(world.number("select count(*) from product_views").await, user, "{address}");
    }
    let events = "select count(*) from outbox where event_type = 'loopers.product.viewed.v1'";
    assert_eq!(world.number(events).await, 3);
}

/// A cache that knows nothing, and looks whether a transaction of the shop is open when it is asked.
struct Watching<'w>(&'w World);

impl Watching<'_> {
    async fn look(&self) {
        let open = "select count(*) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid() and state like 'idle in transaction%'";
        assert_eq!(self.0.number(open).await, 0, "no transaction waits for the cache");
    }
}

impl ProductCache for Watching<'_> {
    async fn get(&self, _product: ProductId) -> Answer<Option<Product>> {
        self.look().await;
        Ok(None)
    }

    async fn put(&self, _product: &Product) -> Answer<()> {
        self.look().await;
        Ok(())
    }

    async fn remove(&self, _product: ProductId) -> Answer<()> {
        Ok(())
    }
}

/// A cache that is slow holds no transaction open: it is asked before one begins, and told after it has ended.
#[tokio::test]
async fn no_transaction_is_open_while_the_cache_is_asked() {
    let world = World::new(&[]).await;
    let product = world.product(5).await;
    catalogue::view(&world.units(), &Watching(&world), product, 1).await.expect("viewed");
    assert_eq!(world.number("select count(*) from outbox").await, 1);
}

/// What the cache has is shown from there, and what it has not is given to it.
#[tokio::test]
async fn what_the_cache_has_is_shown_from_there() {
    let world = World::new(&[]).await;
    let product = world.product(5).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, cache::stub()).await });
    let cache = HttpCache::new(story::process::client(), &format!("http://{address}")).patient();
    catalogue::view(&world.units(), &cache, product, 1).await.expect("viewed");
    world.run("update products set name = 'coffee'").await;
    let seen = catalogue::view(&world.units(), &cache, product, 2).await.expect("viewed");
    assert_eq!(seen.name, "tea", "as it was cached");
}
