//! One transaction for the change and its events; the ports of Licensing, Audit and of those who only publish. What Licensing asks of
//! Billing, the port of Billing answers.

use postrider::NewEvent;
use sqlx::Row as _;
use uuid::Uuid;

use super::{Connection, Outbox, Row, Tx, sql};
use crate::adapters::clock;
use crate::audit::{Entry, Trail};
use crate::billing::Subscriptions;
use crate::contracts::{Answer, AttemptId, Fact, GuildId, SubscriptionId, Timestamp};
use crate::licensing::{License, Licenses, Status};
use crate::{guild, identity, member, recovery};

/// A fact as an event of the log.
pub fn event_of<E: Fact>(fact: &E) -> postrider::Result<NewEvent> {
    NewEvent::of(E::CONTEXT, E::NAME, E::AGGREGATE, fact.aggregate_id().to_string(), fact)
}

/// How events are recorded in a transaction: as new ones, or as what another event caused.
pub enum UnitOfWork<'a> {
    /// The transaction of a command.
    Command(&'a Outbox, &'a mut Connection),
    /// The transaction of a handler, and when its event happened.
    Handler(&'a mut Tx, Timestamp),
}

impl UnitOfWork<'_> {
    pub(super) fn db(&mut self) -> &mut Connection {
        match self {
            Self::Command(_, connection) => connection,
            Self::Handler(tx, _) => tx,
        }
    }

    pub(super) async fn record(&mut self, fact: impl Fact) -> Answer<()> {
        let event = event_of(&fact)?;
        match self {
            Self::Command(outbox, connection) => outbox.record(connection, &event).await.map(drop)?,
            Self::Handler(tx, _) => tx.record(&event).await?,
        }
        Ok(())
    }
}

macro_rules! publishers {
    ($($context:ident),+) => {$(
        impl $context::Publisher for UnitOfWork<'_> {
            async fn publish(&mut self, event: impl Fact) -> Answer<()> {
                self.record(event).await
            }
        }
    )+};
}
publishers!(guild, identity, member, recovery);

fn license(row: &Row) -> sqlx::Result<License> {
    let status: String = row.try_get("status")?;
    Ok(License {
        id: row.try_get("id")?,
        guild_id: row.try_get("guild_id")?,
        subscription_id: row.try_get("subscription_id")?,
        plan_code: row.try_get("plan_code")?,
        status: if status == "active" { Status::Active } else { Status::Suspended },
        expires_at: row.try_get("expires_at")?,
        payer_gone: row.try_get("payer_gone")?,
    })
}

impl Licenses for UnitOfWork<'_> {
    async fn of_guild(&mut self, guild: GuildId) -> Answer<Option<License>> {
        let text = "select * from licensing.licenses where guild_id = $1 and status <> 'canceled' for update";
        let row = sqlx::query(sql(text)).bind(guild).fetch_optional(self.db()).await?;
        Ok(row.as_ref().map(license).transpose()?)
    }

    async fn of_subscription(&mut self, subscription: SubscriptionId) -> Answer<Option<License>> {
        let text =
            "select * from licensing.licenses where subscription_id = $1 and status <> 'canceled' for update";
        let row = sqlx::query(sql(text)).bind(subscription).fetch_optional(self.db()).await?;
        Ok(row.as_ref().map(license).transpose()?)
    }

    async fn paid_by(&mut self, key: Uuid) -> Answer<Vec<SubscriptionId>> {
        Subscriptions::paid_by(self, key).await
    }

    async fn granted_by(&mut self, payment: AttemptId) -> Answer<Option<String>> {
        Subscriptions::granted_by(self, payment).await
    }

    fn time(&self) -> Timestamp {
        match self {
            Self::Command(..) => clock::machine(),
            Self::Handler(_, time) => *time,
        }
    }

    async fn save(&mut self, license: &License) -> Answer<()> {
        let status = match license.status {
            Status::Active => "active",
            Status::Suspended => "suspended",
            Status::Canceled => "canceled",
        };
        let text = "insert into licensing.licenses as l (id, guild_id, subscription_id, plan_code, status, expires_at, payer_gone)
            values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do update set subscription_id = excluded.subscription_id,
            payer_gone = excluded.payer_gone,
            plan_code = excluded.plan_code, status = excluded.status, expires_at = greatest(l.expires_at, excluded.expires_at)";
        let save =
            sqlx::query(sql(text)).bind(license.id).bind(license.guild_id).bind(license.subscription_id);
        let save =
            save.bind(&license.plan_code).bind(status).bind(license.expires_at).bind(license.payer_gone);
        save.execute(self.db()).await?;
        Ok(())
    }

    async fn publish(&mut self, event: impl Fact) -> Answer<()> {
        self.record(event).await
    }
}

impl Trail for UnitOfWork<'_> {
    async fn write(&mut self, entry: &Entry) -> Answer<()> {
        let text = "insert into audit.events (outbox_event_id, event_type, aggregate, payload, occurred_at)
            values ($1, $2, $3, $4::jsonb, to_timestamp($5)) on conflict (outbox_event_id) do nothing";
        let write =
            sqlx::query(sql(text)).bind(entry.event_id).bind(&entry.event_type).bind(&entry.aggregate);
        write.bind(&entry.payload).bind(entry.occurred_at).execute(self.db()).await?;
        Ok(())
    }
}
