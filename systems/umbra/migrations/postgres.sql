-- The tables of the contexts. A schema is read and written by the port of its context alone (a test checks it); `outside` belongs to the
-- outside world.
create schema if not exists billing;
create schema if not exists licensing;
create schema if not exists notification;
create schema if not exists audit;
create schema if not exists outside;

create table if not exists billing.billing_keys (id uuid primary key, user_id uuid not null, deleted_at timestamptz);

create table if not exists billing.subscriptions (
    id uuid primary key,
    guild_id uuid not null,
    user_id uuid not null,
    billing_key_id uuid not null references billing.billing_keys,
    plan_code text not null,
    status text not null check (status in ('pending', 'active', 'past_due', 'suspended', 'canceled')),
    period_end bigint not null,
    retry_count integer not null default 0,
    cancel_at_period_end boolean not null default false
);
-- A guild pays once: a second subscription must wait until the first has ended. One that is suspended rests for good, and does not count;
-- one that ends with its period counts until then.
create unique index if not exists one_live_subscription on billing.subscriptions (guild_id)
    where status in ('pending', 'active', 'past_due');

-- An attempt without a result is open: written before the charge, so that its id can be the gateway's idempotency key. `plan_code` is what
-- is charged, `grants` the plan that a payment keeps going. Of a subscription that has ended, the attempt is `refunded` or `void`.
create table if not exists billing.payment_attempts (
    id uuid primary key,
    subscription_id uuid not null references billing.subscriptions,
    opened_at bigint not null,
    plan_code text not null,
    grants text,
    result text check (result in ('succeeded', 'failed', 'refunded', 'void'))
);
create unique index if not exists one_open_attempt on billing.payment_attempts (subscription_id) where result is null;

-- `payer_gone`: the billing key that paid for it was deleted.
create table if not exists licensing.licenses (
    id uuid primary key,
    guild_id uuid not null,
    subscription_id uuid,
    plan_code text not null,
    status text not null check (status in ('active', 'suspended', 'canceled')),
    expires_at bigint not null default 0,
    payer_gone boolean not null default false
);
create unique index if not exists one_active_license on licensing.licenses (guild_id) where status <> 'canceled';

create table if not exists audit.events (
    outbox_event_id uuid not null unique,
    event_type text not null,
    aggregate text not null,
    payload jsonb not null,
    occurred_at timestamptz not null
);

-- The direct messages that were sent.
create table if not exists notification.messages (
    event_id uuid not null,
    channel text not null,
    text text not null,
    primary key (event_id, channel)
);

-- By how many seconds the clock of the application is turned. Empty outside of tests and stories.
create table if not exists outside.clock (seconds bigint not null);

-- One row per event, from its commit on, also before the first worker has made the subscriptions. It is published when every
-- subscription is done with it.
create or replace view events.outbox as
select e.id, e.aggregate_type::text as aggregate_type, e.aggregate_id::text as aggregate_id, e.event_type::text as event_type,
       case when e.content_type is null then events.as_jsonb(e.payload) end as payload, e.occurred_at,
       case when bool_and(s.state in ('done', 'discarded')) then max(s.delivered_at) end as published_at,
       coalesce(max(case when s.state = 'done' then greatest(s.attempts - 1, 0) else s.attempts end), 0) as retry_count,
       max(s.error_message) as last_error, min(s.next_retry_at) as next_retry_at
from events.event e
left join events.event_state s on s.id = e.id
group by e.id;
