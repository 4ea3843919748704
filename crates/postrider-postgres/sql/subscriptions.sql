-- All subscriptions with their lanes, one row a lane. Lock: none. Index: lane_pkey, and the last entry of event_pkey.
-- Parameters: $1 the time, if not the database's.
with clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now, (select max(id) from {schema}.event) as last_id
)
select s.name, s.streams, s.types, s.order_policy, s.on_dead, s.lanes, s.lanes_next, s.since, s.start_frontier, s.paused,
       s.replay, s.created_at, l.lane, l.frontier, greatest(clock.last_id - l.frontier, 0) as behind,
       case when h.leased then l.lease_owner end as owner, case when h.leased then l.lease_until end as lease_until, l.settled_at,
       case when h.leased then l.away end as away, case when h.leased then l.away_since end as away_since,
       s.paused_at, s.paused_by, s.paused_why
from clock cross join {schema}.subscription s
join {schema}.lane l on l.subscription = s.name
cross join lateral (
    select l.lease_owner is not null and l.lease_until > clock.now
               and l.lease_until <= clock.now + l.lease_for + interval '1 second' as leased) as h
order by s.name, l.lane
