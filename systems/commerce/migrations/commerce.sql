-- The tables of the shop, the tables of its consumers, and the document's own tables as views over Postrider's.
create table if not exists products (
    id bigint generated always as identity primary key,
    name text not null,
    price bigint not null check (price >= 0),
    stock integer not null check (stock >= 0)
);

create table if not exists orders (id bigint generated always as identity primary key, user_id bigint not null);

create table if not exists order_lines (
    order_id bigint not null references orders,
    product_id bigint not null references products,
    quantity integer not null check (quantity > 0),
    price bigint not null,
    primary key (order_id, product_id)
);

create table if not exists payments (
    id bigint generated always as identity primary key,
    order_id bigint not null unique references orders,
    amount bigint not null
);

create table if not exists likes (
    user_id bigint not null,
    product_id bigint not null references products,
    primary key (user_id, product_id)
);

create table if not exists product_views (
    id bigint generated always as identity primary key,
    product_id bigint not null references products,
    user_id bigint not null
);

-- What the consumers know. `since` is the time of the event, in microseconds since 1970: an older one changes nothing.
create schema if not exists metrics;

create table if not exists metrics.product_likes (
    user_id bigint not null,
    product_id bigint not null,
    liked boolean not null,
    since bigint not null,
    primary key (user_id, product_id)
);

create table if not exists metrics.product_sales (product_id bigint primary key, quantity bigint not null);

create table if not exists metrics.product_views (product_id bigint primary key, views bigint not null);

create or replace view metrics.product_like_count as
select product_id, count(*) filter (where liked) as likes from metrics.product_likes group by product_id;

-- The document's outbox. A row is there from its commit on; next_retry_at is set while its delivery to Kafka waits for a retry.
create or replace view outbox as
select e.id, e.event_id::varchar(36) as event_id, e.event_type, e.headers ->> 'source' as source, e.aggregate_type, e.aggregate_id,
       e.payload::text as payload, s.next_retry_at, e.recorded_at as created_at
from postrider.event e
left join postrider.event_state s on s.id = e.id and s.subscription = 'kafka';

-- The document's cursor: every row up to it was sent, or has failed. It is for people. Nothing reads by it, because a row that is
-- committed late has a lower id.
create or replace view outbox_cursor as
select 1 as id,
       least(l.frontier, (select min(d.id) - 1 from postrider.delivery d
                          where d.subscription = l.subscription and d.state in ('waiting', 'running', 'retrying'))) as last_processed_id,
       l.settled_at as updated_at
from postrider.lane l
where l.subscription = 'kafka' and l.lane = 0;

-- The document's permanent failures: dead events stay until an operator acts, and are never retried by themselves.
create or replace view outbox_failed as
select s.id, s.event_id::varchar(36) as event_id, s.event_type, s.headers ->> 'source' as source, s.aggregate_type, s.aggregate_id,
       e.payload::text as payload, s.error_message, s.last_attempt_at as failed_at
from postrider.event_state s
join postrider.event e on e.id = s.id
where s.subscription = 'kafka' and s.state = 'dead';

-- The document's handled events. Unique, because the inbox is unique by consumer and event.
create or replace view event_handled as
select row_number() over (order by handled_at, consumer, event_id) as id,
       consumer || ':' || event_id as idempotency_key, handled_at as created_at
from postrider.inbox;
