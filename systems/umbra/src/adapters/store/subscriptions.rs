//! The port of Billing: subscriptions, keys and attempts.

use sqlx::Row as _;
use uuid::Uuid;

use super::unit::Unit;
use super::{Row, sql};
use crate::billing::charging::OpenAttempt;
use crate::billing::{Order, Subscription, Subscriptions};
use crate::contracts::{Answer, AttemptId, DAY, Fact, GuildId, SubscriptionId, Timestamp, UserId};

fn subscription(row: &Row) -> sqlx::Result<Subscription> {
    Ok(Subscription {
        id: row.try_get("id")?,
        guild_id: row.try_get("guild_id")?,
        plan_code: row.try_get("plan_code")?,
        status: row.try_get("status")?,
        period_end: row.try_get("period_end")?,
        retry_count: row.try_get("retry_count")?,
        cancel_at_period_end: row.try_get("cancel_at_period_end")?,
    })
}

impl Subscriptions for Unit<'_> {
    async fn add_key(&mut self, key: Uuid, user: UserId) -> Answer<()> {
        let text =
            "insert into billing.billing_keys (id, user_id) values ($1, $2) on conflict (id) do nothing";
        sqlx::query(sql(text)).bind(key).bind(user).execute(self.db()).await?;
        Ok(())
    }

    async fn delete_key(&mut self, key: Uuid) -> Answer<Option<UserId>> {
        let text = "update billing.billing_keys set deleted_at = now() where id = $1 and deleted_at is null
            returning user_id";
        Ok(sqlx::query_scalar(sql(text)).bind(key).fetch_optional(self.db()).await?)
    }

    async fn open(&mut self, order: &Order, attempt: AttemptId, now: Timestamp) -> Answer<()> {
        if self.find(order.subscription_id).await?.is_some() {
            return Ok(());
        }
        let key = order.billing_key_id.unwrap_or_else(Uuid::new_v4);
        if order.billing_key_id.is_none() {
            self.add_key(key, order.user_id).await?;
        }
        let text = "insert into billing.subscriptions (id, guild_id, user_id, billing_key_id, plan_code, status, period_end)
            select $1, $2, $3, id, $5, 'pending', $6 from billing.billing_keys where id = $4 and deleted_at is null";
        let open =
            sqlx::query(sql(text)).bind(order.subscription_id).bind(order.guild_id).bind(order.user_id);
        let opened = open.bind(key).bind(&order.plan_code).bind(now).execute(self.db()).await?;
        if opened.rows_affected() == 0 {
            return Err("the billing key does not exist".into());
        }
        self.attempt(order.subscription_id, attempt, now).await.map(drop)
    }

    async fn attempt(
        &mut self,
        subscription: SubscriptionId,
        attempt: AttemptId,
        now: Timestamp,
    ) -> Answer<bool> {
        let text = "insert into billing.payment_attempts (id, subscription_id, opened_at) values ($1, $2, $3)
            on conflict (subscription_id) where result is null do nothing";
        let opened = sqlx::query(sql(text)).bind(attempt).bind(subscription).bind(now);
        Ok(opened.execute(self.db()).await?.rows_affected() == 1)
    }

    async fn open_attempts(&mut self, before: Timestamp) -> Answer<Vec<OpenAttempt>> {
        let text = "select a.id, a.subscription_id, s.plan_code from billing.payment_attempts a
            join billing.subscriptions s on s.id = a.subscription_id
            where a.result is null and a.opened_at <= $1 order by a.opened_at, a.id";
        let rows = sqlx::query(sql(text)).bind(before).fetch_all(self.db()).await?;
        let attempt = |row: &Row| {
            let (id, subscription_id) = (row.try_get("id")?, row.try_get("subscription_id")?);
            Ok(OpenAttempt { id, subscription_id, plan_code: row.try_get("plan_code")? })
        };
        Ok(rows.iter().map(attempt).collect::<sqlx::Result<_>>()?)
    }

    async fn due(&mut self, now: Timestamp) -> Answer<Vec<SubscriptionId>> {
        let text = "select s.id from billing.subscriptions s where s.status in ('active', 'past_due') and s.period_end <= $1
            and not exists (select 1 from billing.payment_attempts a where a.subscription_id = s.id
                and a.result = 'failed' and a.opened_at + $2 > $1) order by s.id";
        Ok(sqlx::query_scalar(sql(text)).bind(now).bind(DAY).fetch_all(self.db()).await?)
    }

    async fn find(&mut self, id: SubscriptionId) -> Answer<Option<Subscription>> {
        let text = "select * from billing.subscriptions where id = $1 for update";
        let row = sqlx::query(sql(text)).bind(id).fetch_optional(self.db()).await?;
        Ok(row.as_ref().map(subscription).transpose()?)
    }

    async fn close(&mut self, attempt: AttemptId, succeeded: bool) -> Answer<Option<Subscription>> {
        let text = "update billing.payment_attempts set result = $2 where id = $1 and result is null returning subscription_id";
        let result = if succeeded { "succeeded" } else { "failed" };
        let closed: Option<Uuid> =
            sqlx::query_scalar(sql(text)).bind(attempt).bind(result).fetch_optional(self.db()).await?;
        match closed {
            Some(id) => self.find(id).await,
            None => Ok(None),
        }
    }

    async fn of_guild(&mut self, guild: GuildId) -> Answer<Vec<Subscription>> {
        let text = "select * from billing.subscriptions where guild_id = $1 order by id for update";
        let rows = sqlx::query(sql(text)).bind(guild).fetch_all(self.db()).await?;
        Ok(rows.iter().map(subscription).collect::<sqlx::Result<_>>()?)
    }

    async fn of_key(&mut self, key: Uuid) -> Answer<Vec<Subscription>> {
        let text = "select * from billing.subscriptions where billing_key_id = $1 order by id for update";
        let rows = sqlx::query(sql(text)).bind(key).fetch_all(self.db()).await?;
        Ok(rows.iter().map(subscription).collect::<sqlx::Result<_>>()?)
    }

    async fn save(&mut self, subscription: &Subscription) -> Answer<()> {
        let text =
            "update billing.subscriptions set status = $2, period_end = $3, retry_count = $4, plan_code = $5,
            cancel_at_period_end = $6 where id = $1";
        let save = sqlx::query(sql(text)).bind(subscription.id).bind(&subscription.status);
        let save = save.bind(subscription.period_end).bind(subscription.retry_count);
        let save = save.bind(&subscription.plan_code).bind(subscription.cancel_at_period_end);
        save.execute(self.db()).await?;
        Ok(())
    }

    async fn publish(&mut self, event: impl Fact) -> Answer<()> {
        self.record(event).await
    }
}
