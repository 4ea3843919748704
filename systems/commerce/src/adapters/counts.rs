//! What the consumers count, on PostgreSQL: each in tables of its own, in the schema `metrics`.

use sqlx::{PgConnection, PgPool};

use crate::application::consumers::{LikeState, LikeStates, Sales, Views};
use crate::application::ports::{Answer, Refusal};
use crate::domain::{Line, OrderId, ProductId};

/// The likes. A state that is older than the known one changes nothing: a dead letter that is put back may be.
#[derive(Debug, Clone)]
pub struct PgLikes(pub PgPool);

impl LikeStates for PgLikes {
    async fn keep(&mut self, states: &[LikeState]) -> Answer<()> {
        let sql = "insert into metrics.product_likes as known (user_id, product_id, liked, since)
            select * from unnest($1::bigint[], $2::bigint[], $3::boolean[], $4::bigint[])
            on conflict (user_id, product_id) do update set liked = excluded.liked, since = excluded.since
            where known.since <= excluded.since";
        let keep = sqlx::query(sql)
            .bind(states.iter().map(|state| state.user_id).collect::<Vec<_>>())
            .bind(states.iter().map(|state| state.product_id).collect::<Vec<_>>())
            .bind(states.iter().map(|state| state.liked).collect::<Vec<_>>())
            .bind(states.iter().map(|state| state.since).collect::<Vec<_>>());
        keep.execute(&self.0).await.map(drop).map_err(Refusal::failed)
    }
}

/// Sales and views, in the transaction that marks their event as handled.
#[derive(Debug)]
pub struct Within<'t>(pub &'t mut PgConnection);

impl Sales for Within<'_> {
    async fn lines(&mut self, order: OrderId) -> Answer<Vec<Line>> {
        let sql = "select product_id, quantity from order_lines where order_id = $1";
        let rows = sqlx::query_as(sql).bind(order).fetch_all(&mut *self.0).await;
        let line = |(product_id, quantity)| Line { product_id, quantity };
        Ok(rows.map_err(Refusal::failed)?.into_iter().map(line).collect())
    }

    async fn add(&mut self, line: &Line) -> Answer<()> {
        let sql = "insert into metrics.product_sales as known (product_id, quantity) values ($1, $2)
            on conflict (product_id) do update set quantity = known.quantity + excluded.quantity";
        let add = sqlx::query(sql).bind(line.product_id).bind(i64::from(line.quantity));
        add.execute(&mut *self.0).await.map(drop).map_err(Refusal::failed)
    }
}

impl Views for Within<'_> {
    async fn add(&mut self, product: ProductId) -> Answer<()> {
        let sql = "insert into metrics.product_views as known (product_id, views) values ($1, 1)
            on conflict (product_id) do update set views = known.views + 1";
        sqlx::query(sql).bind(product).execute(&mut *self.0).await.map(drop).map_err(Refusal::failed)
    }
}
