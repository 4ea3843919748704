//! The unit of work on PostgreSQL: one transaction for the change and the events that say so.

use postrider::ErrorKind;
use postrider::postgres::Outbox;
use sqlx::{PgPool, Postgres, Row, Transaction};

use crate::adapters::mapping::Encoding;
use crate::application::ports::{Answer, Refusal, Unit, Units};
use crate::domain::{DomainEvent, Line, Order, OrderId, PaymentId, Product, ProductId, UserId, Won, order};

/// Creates the schema of Postrider, the tables of the shop, and the document's tables as views.
pub async fn migrate(pool: &PgPool) -> Answer<Outbox> {
    let outbox = Outbox::migrated(pool).await.map_err(Refusal::failed)?;
    let sql = include_str!("../../migrations/commerce.sql");
    sqlx::raw_sql(sql).execute(pool).await.map_err(Refusal::failed)?;
    Ok(outbox)
}

/// The transactions of the shop.
#[derive(Debug, Clone)]
pub struct PgUnits {
    outbox: Outbox,
    encoding: Encoding,
}

impl PgUnits {
    /// Transactions whose events are written down like this.
    pub fn new(outbox: Outbox, encoding: Encoding) -> Self {
        Self { outbox, encoding }
    }
}

/// One transaction. Dropped, it is rolled back.
#[derive(Debug)]
pub struct PgUnit {
    tx: Transaction<'static, Postgres>,
    outbox: Outbox,
    encoding: Encoding,
}

/// An event that no store can keep is refused for good: to ask again does not help.
fn unpublished(error: postrider::Error) -> Refusal {
    match error.kind() {
        ErrorKind::Invalid => Refusal::Invalid(error.message().to_owned()),
        _ => Refusal::failed(error),
    }
}

impl Units for PgUnits {
    type Unit = PgUnit;

    async fn begin(&self) -> Answer<PgUnit> {
        let tx = self.outbox.pool().begin().await.map_err(Refusal::failed)?;
        Ok(PgUnit { tx, outbox: self.outbox.clone(), encoding: self.encoding })
    }
}

impl Unit for PgUnit {
    async fn add_product(&mut self, name: &str, price: Won, stock: i32) -> Answer<ProductId> {
        let sql = "insert into products (name, price, stock) values ($1, $2, $3) returning id";
        let added = sqlx::query_scalar(sql).bind(name).bind(price).bind(stock);
        added.fetch_one(&mut *self.tx).await.map_err(Refusal::failed)
    }

    async fn product(&mut self, product: ProductId) -> Answer<Option<Product>> {
        let sql = "select name, price, stock > 0 as available from products where id = $1";
        let row = sqlx::query(sql).bind(product).fetch_optional(&mut *self.tx).await;
        let Some(row) = row.map_err(Refusal::failed)? else { return Ok(None) };
        Ok(Some(Product {
            id: product,
            name: row.try_get("name").map_err(Refusal::failed)?,
            price: row.try_get("price").map_err(Refusal::failed)?,
            available: row.try_get("available").map_err(Refusal::failed)?,
        }))
    }

    async fn take_stock(&mut self, product: ProductId, quantity: i32) -> Answer<Option<i32>> {
        let sql = "update products set stock = stock - $2 where id = $1 and stock >= $2 returning stock";
        let taken = sqlx::query_scalar(sql).bind(product).bind(quantity);
        taken.fetch_optional(&mut *self.tx).await.map_err(Refusal::failed)
    }

    async fn add_like(&mut self, user: UserId, product: ProductId) -> Answer<bool> {
        let sql = "insert into likes (user_id, product_id) select $1, id from products where id = $2
            on conflict do nothing";
        let added = sqlx::query(sql).bind(user).bind(product).execute(&mut *self.tx).await;
        Ok(added.map_err(Refusal::failed)?.rows_affected() == 1)
    }

    async fn remove_like(&mut self, user: UserId, product: ProductId) -> Answer<bool> {
        let sql = "delete from likes where user_id = $1 and product_id = $2";
        let removed = sqlx::query(sql).bind(user).bind(product).execute(&mut *self.tx).await;
        Ok(removed.map_err(Refusal::failed)?.rows_affected() == 1)
    }

    async fn add_view(&mut self, product: ProductId, user: UserId) -> Answer<()> {
        let sql = "insert into product_views (product_id, user_id) values ($1, $2)";
        let added = sqlx::query(sql).bind(product).bind(user).execute(&mut *self.tx).await;
        added.map(drop).map_err(Refusal::failed)
    }

    async fn add_order(&mut self, user: UserId, lines: &[Line]) -> Answer<OrderId> {
        let sql = "insert into orders (user_id) values ($1) returning id";
        let added = sqlx::query_scalar(sql).bind(user).fetch_one(&mut *self.tx).await;
        let order: OrderId = added.map_err(Refusal::failed)?;
        let mut priced = Vec::with_capacity(lines.len());
        for Line { product_id, quantity } in lines {
            let sql = "insert into order_lines (order_id, product_id, quantity, price)
                select $1, id, $3, price from products where id = $2 returning price";
            let line = sqlx::query_scalar(sql).bind(order).bind(product_id).bind(quantity);
            let price: Option<Won> = line.fetch_optional(&mut *self.tx).await.map_err(Refusal::failed)?;
            priced.push((*quantity, price.ok_or_else(|| Refusal::no_product(*product_id))?));
        }
        order::amount(&priced).ok_or_else(Refusal::too_expensive)?;
        Ok(order)
    }

    async fn order(&mut self, order: OrderId) -> Answer<Option<Order>> {
        let sql = "select (select id from payments where order_id = o.id) as payment from orders o where id = $1 for update";
        let row = sqlx::query(sql).bind(order).fetch_optional(&mut *self.tx).await;
        let Some(row) = row.map_err(Refusal::failed)? else { return Ok(None) };
        let payment = row.try_get("payment").map_err(Refusal::failed)?;
        let sql = "select product_id, quantity, price from order_lines where order_id = $1";
        let rows = sqlx::query_as::<_, (ProductId, i32, Won)>(sql).bind(order).fetch_all(&mut *self.tx);
        let rows = rows.await.map_err(Refusal::failed)?;
        let priced: Vec<(i32, Won)> = rows.iter().map(|(_, quantity, price)| (*quantity, *price)).collect();
        let amount = order::amount(&priced).ok_or_else(Refusal::too_expensive)?;
        let line = |(product_id, quantity, _): (ProductId, i32, Won)| Line { product_id, quantity };
        Ok(Some(Order { id: order, amount, payment, lines: rows.into_iter().map(line).collect() }))
    }

    async fn add_payment(&mut self, order: OrderId, amount: Won) -> Answer<PaymentId> {
        let sql = "insert into payments (order_id, amount) values ($1, $2) returning id";
        let added = sqlx::query_scalar(sql).bind(order).bind(amount).fetch_one(&mut *self.tx).await;
        added.map_err(Refusal::failed)
    }

    async fn publish(&mut self, event: DomainEvent) -> Answer<()> {
        let event = (self.encoding)(&event).map_err(unpublished)?;
        self.outbox.record(&mut self.tx, &event).await.map(drop).map_err(unpublished)
    }

    async fn commit(self) -> Answer<()> {
        self.tx.commit().await.map_err(Refusal::failed)
    }
}
