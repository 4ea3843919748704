-- As postgres.sql, for one file: SQLite has no schemas, so `billing.subscriptions` is `billing_subscriptions`.
create table if not exists billing_billing_keys (id blob primary key, user_id blob not null, deleted_at text);

create table if not exists billing_subscriptions (
    id blob primary key,
    guild_id blob not null,
    user_id blob not null,
    billing_key_id blob not null references billing_billing_keys,
    plan_code text not null,
    status text not null check (status in ('pending', 'active', 'past_due', 'suspended', 'canceled')),
    period_end integer not null,
    retry_count integer not null default 0,
    cancel_at_period_end boolean not null default false
);
create unique index if not exists one_live_subscription on billing_subscriptions (guild_id)
    where status in ('pending', 'active', 'past_due');

create table if not exists billing_payment_attempts (
    id blob primary key,
    subscription_id blob not null references billing_subscriptions,
    opened_at integer not null,
    plan_code text not null,
    grants text,
    result text check (result in ('succeeded', 'failed', 'refunded', 'void'))
);
create unique index if not exists one_open_attempt on billing_payment_attempts (subscription_id) where result is null;

create table if not exists licensing_licenses (
    id blob primary key,
    guild_id blob not null,
    subscription_id blob,
    plan_code text not null,
    status text not null check (status in ('active', 'suspended', 'canceled')),
    expires_at integer not null default 0,
    payer_gone boolean not null default false
);
create unique index if not exists one_active_license on licensing_licenses (guild_id) where status <> 'canceled';

create table if not exists audit_events (
    outbox_event_id blob not null unique,
    event_type text not null,
    aggregate text not null,
    payload text not null,
    occurred_at real not null
);

create table if not exists notification_messages (
    event_id blob not null,
    channel text not null,
    text text not null,
    primary key (event_id, channel)
);

create table if not exists outside_clock (seconds integer not null);

create view if not exists events_outbox as
select e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.occurred_at,
       case when min(s.state in ('done', 'discarded')) then max(s.delivered_at) end as published_at,
       coalesce(max(case when s.state = 'done' then max(s.attempts - 1, 0) else s.attempts end), 0) as retry_count,
       max(s.error_message) as last_error, min(s.next_retry_at) as next_retry_at
from postrider_event e
left join postrider_event_state s on s.id = e.id
group by e.id;
