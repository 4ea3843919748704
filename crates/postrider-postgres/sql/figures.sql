-- How many of a subscription's events are where, by stream.
-- Lock: none. Index: event_pkey from the lowest frontier on, at most {most} rows (a million, or a sample); event_tx for the late ones, that is, for
-- the transactions that were running when a lane last read; delivery_open and delivery_dead for what was read and is open.
-- A waiting row that has a time in `look_at` is the first of its key (see migration 7); in strict order it is due only if it is the first of
-- its lane, by delivery_lane.
-- What is open is looked up one by one, whatever the statistics say. While a lane reads many late ones in parts, all of them
-- count as pending until the last part is settled.
-- Parameters: $1 subscription, $2 the time, if not the database's, $3 this cluster, $4 its floor, $5 seconds: those recorded
--   longer ago than that are counted, too.
with clock as materialized (
    select coalesce($2::timestamptz, clock_timestamp()) as now
), lanes as materialized (
    select l.lane, l.frontier, l.snapshot, l.system, l.reading, split_part(l.position, '/', 4)::bigint as bound,
           l.lease_owner is not null and l.lease_until > clock.now
               and l.lease_until <= clock.now + l.lease_for + interval '1 second' as leased
    from {schema}.lane l cross join clock where l.subscription = $1::text
), in_flight as materialized (
    select distinct c.x
    from lanes cross join lateral (
        select pg_snapshot_xip(lanes.snapshot) as x
        union all
        select n::text::xid8 from generate_series(pg_snapshot_xmax(lanes.snapshot)::text::bigint, lanes.bound - 1) as n) as c
), unread as (
    (select e.*
     from in_flight cross join lateral (
         select e.id, e.tx_id, e.stream, e.event_type, e.ordering_key, e.aggregate_type, e.aggregate_id, e.recorded_at
         from {schema}.event e
         where (e.tx_id, e.id) > (in_flight.x, 0::bigint)
           and (e.tx_id, e.id) <= (in_flight.x, (select min(frontier) from lanes))
         order by e.tx_id, e.id limit {most}) as e
     limit {most})
    union all
    (select e.id, e.tx_id, e.stream, e.event_type, e.ordering_key, e.aggregate_type, e.aggregate_id, e.recorded_at
     from {schema}.event e where e.id > (select min(frontier) from lanes) order by e.id limit {most})
), found (stream, state, recorded_at, attempts, waits, due, next_at) as (
    select e.stream, case when l.leased and e.id <= l.reading then 'processing' else 'pending' end, e.recorded_at, 0, false, false, null::timestamptz
    from {schema}.subscription s
    cross join (select * from unread limit {most}) as e
    join lanes l on l.lane = case when s.lanes = 1 then 0 else {schema}.hash_of(
        {schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id)) % s.lanes end
    where s.name = $1::text
      and (cardinality(s.streams) = 0 or e.stream like any (s.streams))
      and (cardinality(s.types) = 0 or e.event_type like any (s.types))
      and (s.since is null or e.recorded_at >= s.since)
      and not (e.id <= l.frontier
               and ((l.system = $3::bigint and e.id <= $4::bigint) or pg_visible_in_snapshot(e.tx_id, l.snapshot)))
    union all
    select e.stream, case d.state when 'running' then 'processing' else 'retrying' end, e.recorded_at, d.attempts,
           d.state = 'waiting',
           case when d.state = 'waiting' and d.look_at is not null
                then (select s.order_policy from {schema}.subscription s where s.name = $1::text) <> 'strict'
                     or d.id = (select k.id from {schema}.delivery k
                                where k.subscription = $1::text and k.lane = d.lane and k.holds order by k.id limit 1)
                else false end,
           case d.state when 'retrying' then d.next_at end
    from {schema}.delivery d
    cross join lateral (select e.stream, e.recorded_at from {schema}.event e where e.id = d.id limit 1) as e
    where d.subscription = $1::text and d.state in ('waiting', 'running', 'retrying')
    union all
    select e.stream, 'dead', null, 0, false, false, null
    from {schema}.delivery d
    cross join lateral (select e.stream from {schema}.event e where e.id = d.id limit 1) as e
    where d.subscription = $1::text and d.state = 'dead'
)
select stream, count(*) filter (where state = 'pending') as pending, count(*) filter (where state = 'processing') as processing,
       count(*) filter (where state = 'retrying') as retrying, count(*) filter (where state = 'dead') as dead,
       greatest(coalesce(extract(epoch from (select now from clock) - min(recorded_at)), 0), 0)::float8 as oldest_seconds,
       sum(attempts)::bigint as attempts,
       count(*) filter (where recorded_at < (select now from clock) - make_interval(secs => $5::float8)) as over,
       count(*) filter (where waits) as waiting, extract(epoch from min(next_at) - (select now from clock))::float8 as retry_in,
       count(*) filter (where due) as due,
       greatest(coalesce(extract(epoch from (select now from clock) - min(recorded_at) filter (where state = 'pending')), 0), 0)::float8
           as oldest_pending_seconds
from found group by stream order by stream
