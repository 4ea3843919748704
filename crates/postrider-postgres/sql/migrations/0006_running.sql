-- Deliveries that are running: begun, and not finished when their batch was settled. Publishers never touch this table; relays wait
-- while it is looked through once and its index is made anew.

-- For a running one: the epoch of the lease it was begun under. Under that epoch it is in hand; under another its holder is gone. (No
-- constraint says so: a relay of before that inherits one does not know the column.)
alter table {schema}.delivery add column epoch bigint,
    drop constraint delivery_state_check,
    add constraint delivery_state_check check (state in ('waiting', 'running', 'retrying', 'dead', 'delivered', 'discarded'));

-- `holds` is true for a running one, too.
drop index {schema}.delivery_open;
create index delivery_open on {schema}.delivery (subscription, id) where state in ('waiting', 'running', 'retrying');

-- waiting -> running | retrying -> delivered | dead; running -> waiting, when it was cut short; dead -> retrying | discarded. No
-- other step, whoever takes it.
create or replace function {schema}.delivery_step() returns trigger language plpgsql as $$
begin
    if (old.state in ('waiting', 'running') and new.state <> 'discarded')
       or (old.state = 'retrying' and new.state in ('running', 'retrying', 'delivered', 'dead'))
       or (old.state = 'dead' and new.state in ('dead', 'retrying', 'discarded')) then
        return new;
    end if;
    raise exception 'postrider: a delivery that is % can''t become %', old.state, new.state using errcode = 'restrict_violation';
end
$$;

-- As before: what is running is open.
create or replace function {schema}.sweepable(cutoff timestamptz, after bigint, most integer) returns setof bigint
language plpgsql stable as $$
declare
    highest bigint := (select min({schema}.horizon(name, cutoff)) from {schema}.subscription);
    here    bigint := {schema}.this_system();
    ground  bigint := coalesce((select floor from {schema}.cluster where system = here), 0);
    lowest  bigint := (select min(l.frontier) from {schema}.lane l);
    oldest  xid8   := (select pg_snapshot_xmin(l.snapshot) from {schema}.lane l order by 1 limit 1);
begin
    return query
    with recent as materialized (
        select distinct unnest(b.late) as id from {schema}.subscription s
        join {schema}.settled_batch b on b.subscription = s.name and b.settled_at > cutoff and b.late is not null
    )
    select e.id from {schema}.event e
    where e.id > after and e.id <= highest
      and ((e.id <= lowest and e.tx_id < oldest)
           or not exists (
              select from {schema}.lane l
              where not (e.id <= l.frontier
                         and ((l.system = here and e.id <= ground) or pg_visible_in_snapshot(e.tx_id, l.snapshot)))))
      and not exists (
          select from {schema}.delivery d
          where d.id = e.id and (d.state in ('waiting', 'running', 'retrying', 'dead') or d.last_attempt_at > cutoff))
      and not exists (select from recent where recent.id = e.id)
    order by e.id limit most;
end
$$;

-- As before: what is running is open.
create or replace function {schema}.forgettable(cutoff timestamptz, since timestamptz, most integer)
returns table (consumer text, event_id uuid) language plpgsql stable as $$
declare
    here   bigint := {schema}.this_system();
    ground bigint := coalesce((select floor from {schema}.cluster where system = here), 0);
begin
    return query
    select i.consumer, i.event_id from {schema}.inbox i
    where i.handled_at >= since and i.handled_at <= cutoff
      and not exists (
          select from {schema}.event e
          where e.event_id = i.event_id
            and (exists (select from {schema}.delivery d
                         where d.id = e.id and d.state in ('waiting', 'running', 'retrying', 'dead'))
                 or exists (select from {schema}.lane l
                            where not (e.id <= l.frontier
                                       and ((l.system = here and e.id <= ground)
                                            or pg_visible_in_snapshot(e.tx_id, l.snapshot))))))
    order by i.handled_at limit most;
end
$$;

-- As before: what is running is open.
create or replace function {schema}.hash_deliveries() returns void language sql volatile set search_path = pg_catalog, pg_temp as $$
    update {schema}.delivery d
    set lane_hash = {schema}.hash_of({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id))
    from {schema}.event e
    where e.id = d.id and e.event_id = d.event_id and d.state in ('waiting', 'running', 'retrying', 'dead')
$$;

-- As before: what is running is being processed.
create or replace view {schema}.event_state as
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id,
       {schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id) as ordering_key, e.sequence,
       s.name as subscription, p.lane,
       case
           when d.state = 'running' then 'processing'
           when d.state in ('waiting', 'retrying') then 'retrying'
           when d.state in ('dead', 'discarded') then d.state
           when d.state = 'delivered' or p.is_read then 'done'
           when p.leased and e.id <= p.reading then 'processing'
           else 'pending'
       end as state,
       coalesce(d.attempts, case when p.is_read then 1 else 0 end) as attempts,
       coalesce(e.max_attempts, 0) as max_attempts,
       case when d.state = 'retrying' then d.next_at end as next_retry_at,
       coalesce(d.last_attempt_at, case when p.is_read then b.settled_at end) as last_attempt_at,
       case when d.state is not null then d.delivered_at when p.is_read then b.settled_at end as delivered_at,
       case when d.state is not null then d.delivered_by when p.is_read then b.settled_by end as delivered_by,
       case when p.leased then p.lease_owner end as lease_owner,
       case when p.leased then p.lease_until end as lease_until,
       d.error_code, d.error_message,
       e.occurred_at, e.recorded_at, {schema}.as_jsonb(e.headers) as headers,
       case when e.content_type is null then {schema}.as_jsonb(e.payload) end as payload,
       e.content_type, e.content
from {schema}.event e
cross join {schema}.subscription s
cross join lateral (
    select {schema}.hash_of({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id)) as hash
) h
join lateral (
    select l.lane, l.reading, l.lease_owner, l.lease_until,
           l.lease_owner is not null and l.lease_until > clock_timestamp()
               and l.lease_until <= clock_timestamp() + l.lease_for + interval '1 second' as leased,
           e.id <= l.frontier and (
               (l.system = {schema}.this_system()
                and e.id <= (select floor from {schema}.cluster where system = {schema}.this_system()))
               or pg_visible_in_snapshot(e.tx_id, l.snapshot)) as is_read
    from {schema}.lane l
    where l.subscription = s.name and l.lane = h.hash % s.lanes
) p on true
left join {schema}.delivery d on d.subscription = s.name and d.id = e.id
left join lateral (
    select found.settled_at, found.settled_by from (
        (select b.settled_at, b.settled_by, 1 as choice from {schema}.settled_batch b
         where b.late @> array[e.id] and b.subscription = s.name and b.lane = h.hash % b.lanes
         limit 1)
        union all
        (select b.settled_at, b.settled_by, 2 from {schema}.settled_batch b
         where b.subscription = s.name and b.last_id >= e.id and b.first_id <= e.id and b.lane = h.hash % b.lanes
         order by b.last_id limit 1)
    ) as found order by found.choice limit 1
) b on p.is_read
where (cardinality(s.streams) = 0 or e.stream like any (s.streams))
  and (cardinality(s.types) = 0 or e.event_type like any (s.types))
  and (s.since is null or e.recorded_at >= s.since)
  and not (e.id <= s.start_frontier and pg_visible_in_snapshot(e.tx_id, s.start_snapshot));
