//! The port of Billing: subscriptions, keys and attempts.

use sqlx::Row as _;
use uuid::Uuid;

use super::unit::UnitOfWork;
use super::{Row, sql};
use crate::billing::charging::OpenAttempt;
use crate::billing::{Order, Outcome, Refusal, Subscription, Subscriptions, is_over};
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

/// The open attempts that meet a condition on `$1`.
macro_rules! open_attempts {
    ($which:literal) => {
        concat!(
            "select a.id, a.subscription_id, a.plan_code, s.status, s.cancel_at_period_end
            from billing.payment_attempts a join billing.subscriptions s on s.id = a.subscription_id
            where a.result is null and ",
            $which,
            " order by a.opened_at, a.id"
        )
    };
}

fn open_attempt(row: &Row) -> sqlx::Result<OpenAttempt> {
    let (id, subscription_id) = (row.try_get("id")?, row.try_get("subscription_id")?);
    let is_over = is_over(row.try_get("status")?, row.try_get("cancel_at_period_end")?);
    Ok(OpenAttempt { id, subscription_id, plan_code: row.try_get("plan_code")?, is_over })
}

impl UnitOfWork<'_> {
    /// Whether the subscription of an order exists; it is locked. One that was ordered otherwise is refused. A plan that was changed later
    /// does not count: the first attempt has the one that was ordered.
    async fn is_known(&mut self, order: &Order) -> Answer<bool> {
        let text = "select s.guild_id, s.user_id, s.billing_key_id, (select a.plan_code from billing.payment_attempts a
                where a.subscription_id = s.id order by a.opened_at, a.id limit 1)
            from billing.subscriptions s where s.id = $1 for update";
        let known: Option<(Uuid, Uuid, Uuid, String)> =
            sqlx::query_as(sql(text)).bind(order.subscription_id).fetch_optional(self.db()).await?;
        let Some((guild, user, key, plan)) = known else { return Ok(false) };
        let is_key = order.billing_key_id.is_none_or(|ordered| ordered == key);
        if (guild, user, plan) == (order.guild_id, order.user_id, order.plan_code.clone()) && is_key {
            return Ok(true);
        }
        Err(Refusal::OrderedOtherwise.into())
    }

    /// What it means that the subscription of an order was not written: another request was faster, or the key can't be used.
    async fn not_opened(&mut self, order: &Order, key: Uuid) -> Answer<()> {
        if self.is_known(order).await? {
            if order.billing_key_id.is_none() {
                // The other request has a key of its own.
                let text = "delete from billing.billing_keys where id = $1";
                sqlx::query(sql(text)).bind(key).execute(self.db()).await?;
            }
            return Ok(());
        }
        let has_key = self.has_key(key, order.user_id).await?;
        Err(if has_key { Refusal::GuildSubscribed } else { Refusal::NoSuchKey }.into())
    }

    /// The subscriptions whose next charge is due, all or this one.
    async fn due_among(&mut self, only: Option<Uuid>, now: Timestamp) -> Answer<Vec<SubscriptionId>> {
        let text = "select s.id from billing.subscriptions s where s.status in ('active', 'past_due') and s.period_end <= $1
            and not exists (select 1 from billing.payment_attempts a where a.subscription_id = s.id
                and a.result = 'failed' and a.opened_at + $2 > $1) and s.id = coalesce($3, s.id) order by s.id";
        let due = sqlx::query_scalar(sql(text)).bind(now).bind(DAY).bind(only);
        Ok(due.fetch_all(self.db()).await?)
    }

    /// The subscription and the plan of an attempt that has no result.
    async fn open_attempt(&mut self, attempt: AttemptId) -> Answer<Option<(Uuid, String)>> {
        let text = "select subscription_id, plan_code from billing.payment_attempts where id = $1 and result is null";
        Ok(sqlx::query_as(sql(text)).bind(attempt).fetch_optional(self.db()).await?)
    }
}

impl Subscriptions for UnitOfWork<'_> {
    async fn add_key(&mut self, key: Uuid, user: UserId) -> Answer<bool> {
        let text =
            "insert into billing.billing_keys (id, user_id) values ($1, $2) on conflict (id) do nothing";
        Ok(sqlx::query(sql(text)).bind(key).bind(user).execute(self.db()).await?.rows_affected() == 1)
    }

    async fn has_key(&mut self, key: Uuid, user: UserId) -> Answer<bool> {
        let text =
            "select id from billing.billing_keys where id = $1 and user_id = $2 and deleted_at is null";
        let found: Option<Uuid> =
            sqlx::query_scalar(sql(text)).bind(key).bind(user).fetch_optional(self.db()).await?;
        Ok(found.is_some())
    }

    async fn delete_key(&mut self, key: Uuid, user: UserId) -> Answer<bool> {
        let text = "update billing.billing_keys set deleted_at = now()
            where id = $1 and user_id = $2 and deleted_at is null";
        Ok(sqlx::query(sql(text)).bind(key).bind(user).execute(self.db()).await?.rows_affected() == 1)
    }

    async fn open(&mut self, order: &Order, attempt: AttemptId, now: Timestamp) -> Answer<()> {
        if self.is_known(order).await? {
            return Ok(());
        }
        let key = order.billing_key_id.unwrap_or_else(Uuid::new_v4);
        if order.billing_key_id.is_none() {
            self.add_key(key, order.user_id).await?;
        }
        // Locked, so that whoever deletes the key waits: Billing, which hears of the deletion, must see this subscription.
        let text = "insert into billing.subscriptions (id, guild_id, user_id, billing_key_id, plan_code, status, period_end)
            select $1, $2, $3, id, $5, 'pending', $6 from billing.billing_keys
            where id = $4 and user_id = $3 and deleted_at is null
            for share
            on conflict do nothing";
        let open =
            sqlx::query(sql(text)).bind(order.subscription_id).bind(order.guild_id).bind(order.user_id);
        let opened = open.bind(key).bind(&order.plan_code).bind(now).execute(self.db()).await?;
        if opened.rows_affected() == 0 {
            return self.not_opened(order, key).await;
        }
        self.attempt(order.subscription_id, attempt, &order.plan_code, now).await.map(drop)
    }

    async fn attempt(
        &mut self,
        subscription: SubscriptionId,
        attempt: AttemptId,
        plan: &str,
        now: Timestamp,
    ) -> Answer<bool> {
        let text = "insert into billing.payment_attempts (id, subscription_id, opened_at, plan_code) values ($1, $2, $3, $4)
            on conflict (subscription_id) where result is null do nothing";
        let opened = sqlx::query(sql(text)).bind(attempt).bind(subscription).bind(now).bind(plan);
        Ok(opened.execute(self.db()).await?.rows_affected() == 1)
    }

    async fn open_attempts(&mut self, before: Timestamp) -> Answer<Vec<OpenAttempt>> {
        let text = open_attempts!("a.opened_at <= $1");
        let rows = sqlx::query(sql(text)).bind(before).fetch_all(self.db()).await?;
        Ok(rows.iter().map(open_attempt).collect::<sqlx::Result<_>>()?)
    }

    async fn open_attempt_of(&mut self, id: SubscriptionId) -> Answer<Option<OpenAttempt>> {
        let text = open_attempts!("a.subscription_id = $1");
        let row = sqlx::query(sql(text)).bind(id).fetch_optional(self.db()).await?;
        Ok(row.as_ref().map(open_attempt).transpose()?)
    }

    async fn due(&mut self, now: Timestamp) -> Answer<Vec<SubscriptionId>> {
        self.due_among(None, now).await
    }

    async fn is_due(&mut self, id: SubscriptionId, now: Timestamp) -> Answer<bool> {
        Ok(!self.due_among(Some(id), now).await?.is_empty())
    }

    async fn find(&mut self, id: SubscriptionId) -> Answer<Option<Subscription>> {
        let text = "select * from billing.subscriptions where id = $1 for update";
        let row = sqlx::query(sql(text)).bind(id).fetch_optional(self.db()).await?;
        Ok(row.as_ref().map(subscription).transpose()?)
    }

    async fn of_attempt(&mut self, attempt: AttemptId) -> Answer<Option<(Subscription, String)>> {
        let Some((id, _)) = self.open_attempt(attempt).await? else { return Ok(None) };
        // The subscription is locked first, as everybody does; then the attempt may have a result.
        let Some(subscription) = self.find(id).await? else { return Ok(None) };
        Ok(self.open_attempt(attempt).await?.map(|(_, plan)| (subscription, plan)))
    }

    async fn close(&mut self, attempt: AttemptId, outcome: Outcome, grants: Option<&str>) -> Answer<()> {
        let text =
            "update billing.payment_attempts set result = $2, grants = $3 where id = $1 and result is null";
        let result = match outcome {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::Refunded => "refunded",
            Outcome::Void => "void",
        };
        sqlx::query(sql(text)).bind(attempt).bind(result).bind(grants).execute(self.db()).await?;
        Ok(())
    }

    async fn granted_by(&mut self, attempt: AttemptId) -> Answer<Option<String>> {
        let text = "select grants from billing.payment_attempts where id = $1 and grants is not null";
        Ok(sqlx::query_scalar(sql(text)).bind(attempt).fetch_optional(self.db()).await?)
    }

    async fn paid_by(&mut self, key: Uuid) -> Answer<Vec<SubscriptionId>> {
        let text = "select id from billing.subscriptions where billing_key_id = $1 order by id";
        Ok(sqlx::query_scalar(sql(text)).bind(key).fetch_all(self.db()).await?)
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
