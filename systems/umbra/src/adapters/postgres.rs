//! The ports of the contexts on PostgreSQL: one transaction for the change and its events.

use postrider::NewEvent;
use postrider::postgres::{Outbox, Tx};
use sqlx::{PgConnection, PgPool, Row, postgres::PgRow};
use uuid::Uuid;

use crate::audit::{Entry, Trail};
use crate::billing::{Order, Subscription, Subscriptions};
use crate::contracts::{Answer, AttemptId, DAY, Fact, GuildId, SubscriptionId, Timestamp};
use crate::licensing::{License, Licenses, Status};
use crate::notification::Messenger;
use crate::{guild, identity, member, recovery};

/// Creates the schema of Postrider, `events`, and the tables of the contexts.
pub async fn migrate(pool: &PgPool) -> Answer<Outbox> {
    let outbox = Outbox::builder().schema("events").migrated(pool).await?;
    sqlx::raw_sql(include_str!("../../migrations/postgres.sql")).execute(pool).await?;
    Ok(outbox)
}

/// A fact as an event of the log.
pub fn event_of<E: Fact>(fact: &E) -> postrider::Result<NewEvent> {
    NewEvent::of(E::CONTEXT, E::NAME, E::AGGREGATE, fact.aggregate_id().to_string(), fact)
}

/// How events are recorded in a transaction: as new ones, or as what another event caused.
pub enum Unit<'a> {
    /// The transaction of a command.
    Command(&'a Outbox, &'a mut PgConnection),
    /// The transaction of a handler.
    Handler(&'a mut Tx),
}

impl Unit<'_> {
    fn db(&mut self) -> &mut PgConnection {
        match self {
            Self::Command(_, connection) => connection,
            Self::Handler(tx) => tx,
        }
    }

    async fn record(&mut self, fact: impl Fact) -> Answer<()> {
        let event = event_of(&fact)?;
        match self {
            Self::Command(outbox, connection) => outbox.record(connection, &event).await.map(drop)?,
            Self::Handler(tx) => tx.record(&event).await?,
        }
        Ok(())
    }
}

macro_rules! publishers {
    ($($context:ident),+) => {$(
        impl $context::Publisher for Unit<'_> {
            async fn publish(&mut self, event: impl Fact) -> Answer<()> {
                self.record(event).await
            }
        }
    )+};
}
publishers!(guild, identity, member, recovery);

fn license(row: &PgRow) -> sqlx::Result<License> {
    let status: String = row.try_get("status")?;
    Ok(License {
        id: row.try_get("id")?,
        guild_id: row.try_get("guild_id")?,
        subscription_id: row.try_get("subscription_id")?,
        plan_code: row.try_get("plan_code")?,
        status: if status == "active" { Status::Active } else { Status::Suspended },
        expires_at: row.try_get("expires_at")?,
    })
}

impl Licenses for Unit<'_> {
    async fn of_guild(&mut self, guild: GuildId) -> Answer<Option<License>> {
        let sql = "select * from licensing.licenses where guild_id = $1 and status <> 'canceled' for update";
        let row = sqlx::query(sql).bind(guild).fetch_optional(self.db()).await?;
        Ok(row.as_ref().map(license).transpose()?)
    }

    async fn of_subscription(&mut self, subscription: SubscriptionId) -> Answer<Option<License>> {
        let sql =
            "select * from licensing.licenses where subscription_id = $1 and status <> 'canceled' for update";
        let row = sqlx::query(sql).bind(subscription).fetch_optional(self.db()).await?;
        Ok(row.as_ref().map(license).transpose()?)
    }

    async fn paid_by(&mut self, key: Uuid) -> Answer<Vec<SubscriptionId>> {
        let sql = "select id from billing.subscriptions where billing_key_id = $1 order by id";
        Ok(sqlx::query_scalar(sql).bind(key).fetch_all(self.db()).await?)
    }

    async fn save(&mut self, license: &License) -> Answer<()> {
        let status = match license.status {
            Status::Active => "active",
            Status::Suspended => "suspended",
            Status::Canceled => "canceled",
        };
        let sql = "insert into licensing.licenses as l (id, guild_id, subscription_id, plan_code, status, expires_at)
            values ($1, $2, $3, $4, $5, $6) on conflict (id) do update set subscription_id = excluded.subscription_id,
            plan_code = excluded.plan_code, status = excluded.status, expires_at = greatest(l.expires_at, excluded.expires_at)";
        let save = sqlx::query(sql).bind(license.id).bind(license.guild_id).bind(license.subscription_id);
        let save = save.bind(&license.plan_code).bind(status).bind(license.expires_at);
        save.execute(self.db()).await?;
        Ok(())
    }

    async fn publish(&mut self, event: impl Fact) -> Answer<()> {
        self.record(event).await
    }
}

fn subscription(row: &PgRow) -> sqlx::Result<Subscription> {
    Ok(Subscription {
        id: row.try_get("id")?,
        guild_id: row.try_get("guild_id")?,
        plan_code: row.try_get("plan_code")?,
        status: row.try_get("status")?,
        period_end: row.try_get("period_end")?,
        retry_count: row.try_get("retry_count")?,
    })
}

impl Subscriptions for Unit<'_> {
    async fn open(&mut self, order: &Order, attempt: AttemptId, now: Timestamp) -> Answer<()> {
        let key = Uuid::new_v4();
        let sql = "insert into billing.billing_keys (id, user_id) values ($1, $2)";
        sqlx::query(sql).bind(key).bind(order.user_id).execute(self.db()).await?;
        let sql = "insert into billing.subscriptions (id, guild_id, user_id, billing_key_id, plan_code, status, period_end)
            values ($1, $2, $3, $4, $5, 'pending', $6)";
        let open = sqlx::query(sql).bind(order.subscription_id).bind(order.guild_id).bind(order.user_id);
        open.bind(key).bind(&order.plan_code).bind(now).execute(self.db()).await?;
        self.attempt(order.subscription_id, attempt).await
    }

    async fn attempt(&mut self, subscription: SubscriptionId, attempt: AttemptId) -> Answer<()> {
        let sql = "insert into billing.payment_attempts (id, subscription_id) values ($1, $2)
            on conflict (subscription_id) where result is null do nothing";
        sqlx::query(sql).bind(attempt).bind(subscription).execute(self.db()).await?;
        Ok(())
    }

    async fn due(&mut self, now: Timestamp) -> Answer<Vec<SubscriptionId>> {
        let sql = "select id from billing.subscriptions where status in ('active', 'past_due')
            and period_end + retry_count * $2 <= $1 order by id";
        Ok(sqlx::query_scalar(sql).bind(now).bind(DAY).fetch_all(self.db()).await?)
    }

    async fn close(&mut self, attempt: AttemptId, succeeded: bool) -> Answer<Option<Subscription>> {
        let sql = "update billing.payment_attempts set result = $2 where id = $1 and result is null returning subscription_id";
        let result = if succeeded { "succeeded" } else { "failed" };
        let closed: Option<Uuid> =
            sqlx::query_scalar(sql).bind(attempt).bind(result).fetch_optional(self.db()).await?;
        let Some(id) = closed else { return Ok(None) };
        let sql = "select * from billing.subscriptions where id = $1 for update";
        Ok(Some(subscription(&sqlx::query(sql).bind(id).fetch_one(self.db()).await?)?))
    }

    async fn of_guild(&mut self, guild: GuildId) -> Answer<Vec<Subscription>> {
        let sql = "select * from billing.subscriptions where guild_id = $1 order by id for update";
        let rows = sqlx::query(sql).bind(guild).fetch_all(self.db()).await?;
        Ok(rows.iter().map(subscription).collect::<sqlx::Result<_>>()?)
    }

    async fn of_key(&mut self, key: Uuid) -> Answer<Vec<Subscription>> {
        let sql = "select * from billing.subscriptions where billing_key_id = $1 order by id for update";
        let rows = sqlx::query(sql).bind(key).fetch_all(self.db()).await?;
        Ok(rows.iter().map(subscription).collect::<sqlx::Result<_>>()?)
    }

    async fn save(&mut self, subscription: &Subscription) -> Answer<()> {
        let sql =
            "update billing.subscriptions set status = $2, period_end = $3, retry_count = $4 where id = $1";
        let save = sqlx::query(sql).bind(subscription.id).bind(&subscription.status);
        save.bind(subscription.period_end).bind(subscription.retry_count).execute(self.db()).await?;
        Ok(())
    }

    async fn publish(&mut self, event: impl Fact) -> Answer<()> {
        self.record(event).await
    }
}

impl Trail for Unit<'_> {
    async fn write(&mut self, entry: &Entry) -> Answer<()> {
        let sql = "insert into audit.events (outbox_event_id, event_type, aggregate, payload, occurred_at)
            values ($1, $2, $3, $4::jsonb, to_timestamp($5)) on conflict (outbox_event_id) do nothing";
        let write = sqlx::query(sql).bind(entry.event_id).bind(&entry.event_type).bind(&entry.aggregate);
        write.bind(&entry.payload).bind(entry.occurred_at).execute(self.db()).await?;
        Ok(())
    }
}

/// The stub of Discord's direct messages: a table that keeps one message per event.
#[derive(Debug, Clone)]
pub struct Messages(pub PgPool);

impl Messenger for Messages {
    async fn send(&mut self, event: Uuid, text: &str) -> Answer<()> {
        let sql = "insert into outside.messages (event_id, channel, text) values ($1, 'dm', $2) on conflict do nothing";
        sqlx::query(sql).bind(event).bind(text).execute(&self.0).await?;
        Ok(())
    }
}
