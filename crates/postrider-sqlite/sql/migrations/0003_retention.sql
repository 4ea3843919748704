-- Retention and the views of states.

create index postrider_settled_batch_time on postrider_settled_batch (subscription, settled_at);

-- How far retention has got in the log: of what it took, the highest id and the latest time. From there on the log is whole.
create table postrider_swept (
    one         integer primary key check (one = 1),
    id          integer not null,
    recorded_at integer not null
) strict;

-- When the last mark was made that retention took out of a consumer's inbox. What was recorded after that is still known.
create table postrider_forgotten (
    consumer   text primary key,
    handled_at integer not null
) strict, without rowid;

-- What operators did. Rows are only added.
create table postrider_audit (
    id           integer primary key autoincrement,
    at           integer not null,
    who          text not null,
    what         text not null,
    why          text,
    subscription text,
    event_id     blob
) strict;

create trigger postrider_audit_refuse_update before update on postrider_audit
begin
    select raise(abort, 'postrider: what operators did stays written: it can''t be changed');
end;

create trigger postrider_audit_refuse_delete before delete on postrider_audit
begin
    select raise(abort, 'postrider: what operators did stays written: it can''t be deleted');
end;

-- Where every event stands for every subscription that wants it, without asking the time: `settled_state` is
-- null until its lane has read it. The hash of the key is the one of src/hash.rs; GLOB, because LIKE takes A for a.
create view postrider_event_standing as
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.key as ordering_key, e.sequence,
       s.name as subscription, l.lane,
       case
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
