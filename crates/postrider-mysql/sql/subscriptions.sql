-- All subscriptions with their lanes, one row a lane. Lock: none. Index: the primary keys.
-- Parameters: ?1 the time.
select s.name, s.streams, s.types, s.order_policy, s.on_dead, s.lanes, s.lanes_next, s.since, s.start_frontier, s.paused, s.replay,
       s.created_at, l.lane, l.position,
       greatest((select coalesce(max(r.seq), 0) from postrider_run r) - l.position, 0) as behind,
       case when l.lease_until > ?1 and l.lease_until <= ?1 + l.lease_for + 1000000 then l.lease_owner end as owner,
       case when l.lease_owner is not null and l.lease_until > ?1 and l.lease_until <= ?1 + l.lease_for + 1000000
            then l.lease_until end as lease_until, l.settled_at,
       case when l.lease_owner is not null and l.lease_until > ?1 and l.lease_until <= ?1 + l.lease_for + 1000000
            then l.away end as away,
       case when l.lease_owner is not null and l.lease_until > ?1 and l.lease_until <= ?1 + l.lease_for + 1000000
            then l.away_since end as away_since,
       s.paused_at, s.paused_by, s.paused_why
from postrider_subscription s
join postrider_lane l on l.subscription = s.name
order by s.name, l.lane
