-- Deliveries that are running: begun, and not finished when their batch was settled. SQLite changes no constraint of a table, so its
-- rows are copied into a new one.

drop view postrider_event_state;
drop view postrider_event_standing;

-- `epoch` is that of the lease a running one was begun under. Under that epoch it is in hand; under another its holder is gone.
create table postrider_delivery_new (
    subscription    text not null,
    id              integer not null,
    event_id        blob not null,
    key             text not null,
    lane_hash       integer not null,
    state           text not null check (state in ('waiting', 'running', 'retrying', 'dead', 'delivered', 'discarded')),
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
    epoch           integer,
    primary key (subscription, id)
) strict, without rowid;

insert into postrider_delivery_new (subscription, id, event_id, key, lane_hash, state, holds, attempts, next_at, first_failed_at, last_attempt_at, error_code,
       error_message, delivered_at, delivered_by, requeued)
select subscription, id, event_id, key, lane_hash, state, holds, attempts, next_at, first_failed_at, last_attempt_at, error_code,
       error_message, delivered_at, delivered_by, requeued
from postrider_delivery;

drop table postrider_delivery;
alter table postrider_delivery_new rename to postrider_delivery;

-- Open ones: `holds` is true while the row keeps its key from going on (waiting, running, retrying, dead under hold).
create index postrider_delivery_key on postrider_delivery (subscription, key, id) where holds;
create index postrider_delivery_blocking on postrider_delivery (subscription, key, id)
    where holds and state in ('running', 'retrying', 'dead');
create index postrider_delivery_due on postrider_delivery (subscription, id) where state in ('waiting', 'running', 'retrying');
create index postrider_delivery_next on postrider_delivery (subscription, next_at) where state = 'retrying';
create index postrider_delivery_dead on postrider_delivery (subscription, id) where state = 'dead';
create index postrider_delivery_event on postrider_delivery (id);

-- waiting -> running | retrying -> delivered | dead; running -> waiting, when it was cut short; dead -> retrying | discarded. No
-- other step, whoever takes it.
create trigger postrider_delivery_step before update of state on postrider_delivery
when not ((old.state in ('waiting', 'running') and new.state <> 'discarded')
          or (old.state = 'retrying' and new.state in ('running', 'retrying', 'delivered', 'dead'))
          or (old.state = 'dead' and new.state in ('retrying', 'discarded')))
begin
    select raise(abort, 'postrider: a delivery is waiting, then running or retrying, then delivered or dead; only a dead one is requeued or discarded');
end;

-- Where every event stands for every subscription that wants it, without asking the time: `settled_state` is
-- null until its lane has read it. The hash of the key is the one of src/hash.rs; GLOB, because LIKE takes A for a.
create view postrider_event_standing as
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.key as ordering_key, e.sequence,
       s.name as subscription, l.lane,
       case
           when d.state = 'running' then 'processing'
           when d.state in ('waiting', 'retrying') then 'retrying'
           when d.state in ('dead', 'discarded') then d.state
           when d.state = 'delivered' or e.id <= l.position then 'done'
       end as settled_state,
       coalesce(d.attempts, e.id <= l.position) as attempts,
       coalesce(e.max_attempts, 0) as max_attempts,
       case when d.state = 'retrying' then d.next_at end as next_retry_at,
       coalesce(d.last_attempt_at, b.settled_at) as last_attempt_at,
       case when d.state is not null then d.delivered_at else b.settled_at end as delivered_at,
       case when d.state is not null then d.delivered_by else b.settled_by end as delivered_by,
       l.reading, l.lease_owner, l.lease_until, l.lease_for,
       d.error_code, d.error_message,
       e.occurred_at, e.recorded_at, e.headers, e.payload, e.content_type, e.content
from (select *, coalesce(ordering_key, aggregate_type || ':' || aggregate_id) as key from postrider_event) e
cross join postrider_subscription s
join postrider_lane l on l.subscription = s.name and l.lane = case when s.lanes = 1 then 0 else (
    with recursive hash (value, rest) as (
        select 0, e.key
        union all
        select (value * 16777619 + unicode(rest)) % 2147483647, substr(rest, 2) from hash where rest <> '')
    select value from hash where rest = '') % s.lanes end
left join postrider_delivery d on d.subscription = s.name and d.id = e.id
left join postrider_settled_batch b on b.id = case when e.id <= l.position then (
    select n.id from postrider_settled_batch n
    where n.subscription = s.name and n.last_id >= e.id and n.first_id <= e.id
      and n.lane = case when n.lanes = 1 then 0 else (
          with recursive hash (value, rest) as (
              select 0, e.key
              union all
              select (value * 16777619 + unicode(rest)) % 2147483647, substr(rest, 2) from hash where rest <> '')
          select value from hash where rest = '') % n.lanes end
    order by n.last_id limit 1) end
where e.id > s.start_frontier and (s.since is null or e.recorded_at >= s.since)
  and (s.streams = '[]' or exists (
      select 1 from json_each(s.streams) p where e.stream glob replace(replace(p.value, '[', '[[]'), '?', '[?]')))
  and (s.types = '[]' or exists (
      select 1 from json_each(s.types) p where e.event_type glob replace(replace(p.value, '[', '[[]'), '?', '[?]')));

-- The same with leases as they are now: for people. Times are microseconds since 1970; to read one:
-- strftime('%Y-%m-%dT%H:%M:%fZ', recorded_at / 1000000.0, 'unixepoch').
create view postrider_event_state as
select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, subscription, lane,
       coalesce(settled_state, case when leased and id <= reading then 'processing' else 'pending' end) as state,
       attempts, max_attempts, next_retry_at, last_attempt_at, delivered_at, delivered_by,
       case when leased then lease_owner end as lease_owner, case when leased then lease_until end as lease_until,
       error_code, error_message, occurred_at, recorded_at, headers, payload, content_type, content
from (select *, lease_owner is not null
                and lease_until > cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000
                and lease_until <= cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000 + lease_for + 1000000
                as leased
      from postrider_event_standing);
