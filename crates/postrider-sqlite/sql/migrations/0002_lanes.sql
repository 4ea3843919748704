-- Subscriptions, their lanes, what was settled, what did not simply succeed, and what consumers handled.
-- No foreign keys: whether they hold is a setting of each connection in SQLite.

-- streams and types are JSON arrays of patterns as they were written; target is the common position of a
-- change of lanes, once it is known. Somebody who holds wanted_with lanes found none free, and is to be made room for until
-- wanted_until: see want.sql.
create table postrider_subscription (
    name           text primary key,
    streams        text not null,
    types          text not null,
    order_policy   text not null check (order_policy in ('key', 'strict', 'none')),
    on_dead        text not null check (on_dead in ('skip', 'hold')),
    lanes          integer not null check (lanes > 0),
    lanes_next     integer check (lanes_next > 0),
    target         integer,
    since          integer,
    start_frontier integer not null,
    paused         integer not null default 0,
    replay         integer not null default 1,
    wanted_with    integer,
    wanted_until   integer,
    created_at     integer not null
) strict, without rowid;

-- One row a lane: where it stands and who holds it. A position is the id of the last event that was settled.
create table postrider_lane (
    subscription        text not null,
    lane                integer not null,
    position            integer not null,
    reading             integer not null default 0,
    lease_owner         text,
    lease_until         integer,
    lease_for           integer,
    lease_epoch         integer not null default 0,
    claims_since_settle integer not null default 0,
    settled_at          integer,
    primary key (subscription, lane)
) strict, without rowid;

-- One row a batch: the delivery history. Each lane begins with a row of nothing.
create table postrider_settled_batch (
    id           integer primary key,
    subscription text not null,
    lane         integer not null,
    lanes        integer not null,
    first_id     integer not null,
    last_id      integer not null,
    count        integer not null,
    settled_at   integer not null,
    settled_by   text not null
) strict;

create index postrider_settled_batch_range on postrider_settled_batch (subscription, last_id);

-- One row for each event that did not simply succeed. lane_hash is what src/hash.rs makes of the key.
create table postrider_delivery (
    subscription    text not null,
    id              integer not null,
    event_id        blob not null,
    key             text not null,
    lane_hash       integer not null,
    state           text not null check (state in ('waiting', 'retrying', 'dead', 'delivered', 'discarded')),
    holds           integer not null,
    attempts        integer not null,
    next_at         integer,
    first_failed_at integer,
    last_attempt_at integer,
    error_code      text,
    error_message   text,
    delivered_at    integer,
    delivered_by    text,
    requeued        integer not null default 0,
    primary key (subscription, id)
) strict, without rowid;

-- Open ones: `holds` is true while the row keeps its key from going on (waiting, retrying, dead under hold).
create index postrider_delivery_key on postrider_delivery (subscription, key, id) where holds;
create index postrider_delivery_blocking on postrider_delivery (subscription, key, id)
    where holds and state in ('retrying', 'dead');
create index postrider_delivery_due on postrider_delivery (subscription, id) where state in ('waiting', 'retrying');
create index postrider_delivery_next on postrider_delivery (subscription, next_at) where state = 'retrying';
create index postrider_delivery_dead on postrider_delivery (subscription, id) where state = 'dead';
create index postrider_delivery_event on postrider_delivery (id);

-- waiting -> retrying -> delivered | dead; dead -> retrying | discarded. No other step, whoever takes it.
create trigger postrider_delivery_step before update of state on postrider_delivery
when not ((old.state = 'waiting' and new.state in ('waiting', 'retrying', 'delivered', 'dead'))
          or (old.state = 'retrying' and new.state in ('retrying', 'delivered', 'dead'))
          or (old.state = 'dead' and new.state in ('retrying', 'discarded')))
begin
    select raise(abort, 'postrider: a delivery is waiting, then retrying, then delivered or dead; only a dead one is requeued or discarded');
end;

-- What one process does for all the others, who does it now, and what it noted for the next.
create table postrider_duty (
    name        text primary key check (length(cast(name as blob)) between 1 and 200),
    owner       text,
    lease_until integer not null,
    lease_for   integer not null,
    note        text
) strict, without rowid;

-- What consumers have handled, written in their own transactions.
create table postrider_inbox (
    consumer   text not null check (length(cast(consumer as blob)) between 1 and 200),
    event_id   blob not null,
    handled_at integer not null,
    primary key (consumer, event_id)
) strict, without rowid;

create index postrider_inbox_handled on postrider_inbox (handled_at);
