-- All subscriptions with their lanes, one row a lane. Lock: none. Index: the primary keys, and the end of the log.
-- Parameters: ?1 the time.
select s.name, s.streams, s.types, s.order_policy, s.on_dead, s.lanes, s.lanes_next, s.since, s.start_frontier, s.paused, s.replay,
       s.created_at, l.lane, l.position,
       max(coalesce((select max(id) from postrider_event), 0) - l.position, 0) as behind,
       case when h.leased then l.lease_owner end as owner, case when h.leased then l.lease_until end as lease_until, l.settled_at,
       case when h.leased then l.away end as away, case when h.leased then l.away_since end as away_since,
       s.paused_at, s.paused_by, s.paused_why
from postrider_subscription s
join postrider_lane l on l.subscription = s.name
join (select subscription, lane, lease_owner is not null and lease_until > ?1 and lease_until <= ?1 + lease_for + 1000000 as leased
      from postrider_lane) h on h.subscription = l.subscription and h.lane = l.lane
order by s.name, l.lane
