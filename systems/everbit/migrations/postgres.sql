-- The tables of everbit, and the document's queue table as a view over Postrider's. Times of the application are milliseconds since 1970.

create table if not exists signal (
    id           uuid primary key,
    owner_id     text not null,
    strategy_key text not null,
    market       text not null,
    side         text not null check (side in ('BUY', 'SELL')),
    created_at   bigint not null
);

create table if not exists order_intent (
    id           uuid primary key,
    signal_id    uuid not null unique references signal,
    owner_id     text not null,
    strategy_key text not null,
    market       text not null,
    trace        text not null,
    side         text not null check (side in ('BUY', 'SELL')),
    price        bigint not null check (price > 0),
    volume       bigint not null check (volume > 0),
    created_at   bigint not null
);

-- Both keys keep a command that comes twice from becoming two orders.
create table if not exists order_attempt (
    order_intent_id uuid not null references order_intent,
    attempt_no      integer not null,
    identifier      text not null,
    status          text not null check (status in ('REQUESTED', 'ACKED', 'REJECTED', 'THROTTLED', 'UNKNOWN')),
    reason          text not null,
    order_id        text,
    created_at      bigint not null,
    updated_at      bigint not null,
    unique (order_intent_id, attempt_no),
    unique (identifier)
);
create index if not exists order_attempt_open on order_attempt (updated_at) where status in ('REQUESTED', 'UNKNOWN');

-- One row for each time that more of an order was executed. Whoever books adds to what was booked before: two who book at once meet in
-- the key, and one of them gives way.
create table if not exists fill (
    identifier      text not null,
    booked_before   bigint not null,
    order_intent_id uuid not null references order_intent,
    volume          bigint not null check (volume > 0),
    price           bigint not null,
    created_at      bigint not null,
    primary key (identifier, booked_before)
);

create table if not exists position (
    owner_id text not null,
    market   text not null,
    volume   bigint not null,
    primary key (owner_id, market)
);

create table if not exists backtest_job (
    id          uuid primary key,
    market      text not null,
    status      text not null check (status in ('QUEUED', 'FINISHED')),
    profit      bigint,
    created_at  bigint not null,
    finished_at bigint
);

create table if not exists setting (key text primary key, value text not null, updated_at bigint not null);

create table if not exists notification_log (event_id uuid not null unique, text text not null, created_at bigint not null);

create table if not exists operation_log (event_id uuid not null unique, text text not null, created_at bigint not null);

-- The worker of each stream. A stream has one, so an event has one row in the view.
create or replace function worker_of(stream text) returns text language sql immutable as $$
    select case stream
        when 'everbit.trade.command' then 'order-executor-worker'
        when 'everbit.trade.event' then 'notification-worker'
        when 'everbit.backtest.command' then 'backtest-worker'
        when 'everbit.backtest.event' then 'result-reader'
        when 'everbit.system.event' then 'system-worker'
    end
$$;

-- A retry that waits is PENDING with a later next_retry_at. What an operator discarded stays DEAD. One payload that is no JSON, or none
-- that jsonb can hold, must not keep the whole table from being read: it is null then.
create or replace view outbox_event as
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id,
       case when e.content_type is null then postrider.as_jsonb(e.payload) end as payload_json,
       case s.state
           when 'processing' then 'PROCESSING'
           when 'done' then 'DONE'
           when 'dead' then 'DEAD'
           when 'discarded' then 'DEAD'
           else 'PENDING'
       end as status,
       coalesce(s.attempts, 0) as attempt_count, e.max_attempts,
       coalesce(s.next_retry_at, e.recorded_at) as next_retry_at, s.last_attempt_at,
       case when s.state = 'processing' then s.lease_owner end as locked_by,
       case when s.state = 'processing' then s.lease_until end as locked_until,
       s.error_code as last_error_code, s.error_message as last_error_message,
       e.recorded_at as created_at, coalesce(s.delivered_at, s.last_attempt_at, e.recorded_at) as updated_at,
       s.delivered_at as processed_at
from postrider.event e
left join postrider.event_state s on s.id = e.id and s.subscription = worker_of(e.stream);
