-- Subscriptions, their lanes, what was settled, what did not simply succeed, and what consumers handled.

-- The clusters this log has lived in. Transaction ids of one mean nothing in another: below `floor` a row was
-- written before the log came here, and its tx_id is not compared with this cluster's snapshots. `hash` is what the lane
-- hash makes of a known word there.
create table {schema}.cluster (
    system bigint primary key,
    floor  bigint not null,
    hash   integer not null default {schema}.hash_of('postrider'),
    since  timestamptz not null default clock_timestamp()
);

create function {schema}.this_system() returns bigint language sql stable as $$
    select system_identifier from pg_control_system()
$$;

create table {schema}.subscription (
    name           text primary key check (octet_length(name) between 1 and 200),
    streams        text[] not null,
    types          text[] not null,
    order_policy   text not null check (order_policy in ('key', 'strict', 'none')),
    on_dead        text not null check (on_dead in ('skip', 'hold')),
    lanes          integer not null check (lanes > 0),
    lanes_next     integer check (lanes_next > 0),
    target         text,
    since          timestamptz,
    start_frontier bigint not null,
    start_snapshot pg_snapshot not null,
    paused         boolean not null default false,
    replay         boolean not null default true,
    -- Somebody who holds so many lanes found none free, and is to be made room for until then: see want.sql.
    wanted_with    integer,
    wanted_until   timestamptz,
    created_at     timestamptz not null
);

-- One row a lane: where it stands and who holds it. Updated once a batch, by ctid: see settle.sql.
create table {schema}.lane (
    subscription        text not null,
    lane                integer not null,
    position            text not null,
    frontier            bigint not null,
    snapshot            pg_snapshot not null,
    system              bigint not null,
    reading             bigint not null default 0,
    lease_owner         text,
    lease_until         timestamptz,
    lease_for           interval,
    lease_epoch         bigint not null default 0,
    claims_since_settle integer not null default 0,
    settled_at          timestamptz,
    primary key (subscription, lane)
) with (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Who holds how many lanes of a subscription, and the last of them, by the leases that are in force.
create function {schema}.holders(of_subscription text, at timestamptz)
returns table (owner text, lanes integer, last_lane integer) language sql stable as $$
    select l.lease_owner, count(*)::integer, max(l.lane) from {schema}.lane l
    where l.subscription = of_subscription and l.lease_owner is not null and l.lease_until > at
      and l.lease_until <= at + l.lease_for + interval '1 second'
    group by l.lease_owner
$$;

-- Whether a holder is to give this lane up to somebody who found none free: it has at least two more than they have, this is
-- the last of them, and none is free yet. So it gives up one lane at a time. A wish from the future is void: the clock
-- went back.
create function {schema}.gives_way(of_subscription text, holder text, of_lane integer, at timestamptz) returns boolean
language sql stable as $$
    select coalesce(bool_or(h.owner = holder and h.last_lane = of_lane and h.lanes > s.wanted_with + 1)
                    and sum(h.lanes) = max(s.lanes), false)
    from {schema}.subscription s cross join lateral {schema}.holders(s.name, at) as h
    where s.name = of_subscription and s.wanted_until > at and s.wanted_until <= at + interval '11 seconds'
$$;

-- One row a batch: the delivery history.
create table {schema}.settled_batch (
    subscription text not null,
    lane         integer not null,
    lanes        integer not null,
    first_id     bigint not null,
    last_id      bigint not null,
    late         bigint[],
    count        integer not null,
    settled_at   timestamptz not null,
    settled_by   text not null
);

create index settled_batch_range on {schema}.settled_batch (subscription, last_id);
create index settled_batch_late on {schema}.settled_batch using gin (late) where late is not null;

-- One row for each event that did not simply succeed.
create table {schema}.delivery (
    subscription    text not null,
    id              bigint not null,
    event_id        uuid not null,
    key             text not null,
    lane_hash       integer not null,
    state           text not null check (state in ('waiting', 'retrying', 'dead', 'delivered', 'discarded')),
    holds           boolean not null,
    attempts        integer not null,
    next_at         timestamptz,
    first_failed_at timestamptz,
    last_attempt_at timestamptz,
    error_code      text,
    error_message   text,
    delivered_at    timestamptz,
    delivered_by    text,
    requeued        integer not null default 0,
    primary key (subscription, id)
);

-- Open ones: `holds` is true while the row keeps its key from going on (waiting, retrying, dead under hold).
create index delivery_key on {schema}.delivery (subscription, key, id) where holds;
create index delivery_due on {schema}.delivery (subscription, next_at) where state = 'retrying';
create index delivery_dead on {schema}.delivery (subscription, id) where state = 'dead';
create index delivery_open on {schema}.delivery (subscription, id) where state in ('waiting', 'retrying');
create index delivery_event on {schema}.delivery (id);

-- waiting -> retrying -> delivered | dead; dead -> retrying | discarded. No other step, whoever takes it.
create function {schema}.delivery_step() returns trigger language plpgsql as $$
begin
    if (old.state, new.state) in (('waiting', 'waiting'), ('waiting', 'retrying'), ('waiting', 'delivered'), ('waiting', 'dead'),
                                  ('retrying', 'retrying'), ('retrying', 'delivered'), ('retrying', 'dead'),
                                  ('dead', 'dead'), ('dead', 'retrying'), ('dead', 'discarded')) then
        return new;
    end if;
    raise exception 'postrider: a delivery that is % can''t become %', old.state, new.state using errcode = 'restrict_violation';
end
$$;

create trigger delivery_step before update on {schema}.delivery
    for each row execute function {schema}.delivery_step();

-- What one process does for all the others, who does it now, and what it noted for the next.
create table {schema}.duty (
    name        text primary key check (octet_length(name) between 1 and 200),
    owner       text,
    lease_until timestamptz not null,
    lease_for   interval not null,
    note        text
);

-- What consumers have handled, written in their own transactions.
create table {schema}.inbox (
    consumer   text not null check (octet_length(consumer) between 1 and 200),
    event_id   uuid not null,
    handled_at timestamptz not null,
    primary key (consumer, event_id)
);

create index inbox_handled on {schema}.inbox (handled_at);
