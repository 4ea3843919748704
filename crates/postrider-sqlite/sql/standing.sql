-- How a holder stands with its lane, after a settle or an extension: whether the lane is wanted back, and whether anything of
-- the subscription is open. Lock: none of its own. Index: the primary keys, postrider_delivery_due, postrider_delivery_key.
-- A holder gives this lane up to somebody who found none free (see want.sql) if it has at least two more than they have, this
-- is the last of them, and none is free yet: one lane at a time. A wish from the future is void: the clock went back. Who
-- else holds lanes is looked at only if one is wanted.
-- Parameters: ?1 subscription, ?2 where the lane stands, ?3 owner, ?4 lane, ?5 the time.
select s.paused or (s.lanes_next is not null and (s.target is null or s.target = ?2))
           or case when s.wanted_until > ?5 and s.wanted_until <= ?5 + 11000000 then (
               select coalesce(max(h.owner = ?3 and h.last_lane = ?4 and h.lanes > s.wanted_with + 1), 0)
                      and sum(h.lanes) = s.lanes
               from (select l.lease_owner as owner, count(*) as lanes, max(l.lane) as last_lane
                     from postrider_lane l
                     where l.subscription = ?1 and l.lease_owner is not null and l.lease_until > ?5
                       and l.lease_until <= ?5 + l.lease_for + 1000000
                     group by l.lease_owner) h) else 0 end as recalled,
       (exists (select 1 from postrider_delivery d indexed by postrider_delivery_due
                where d.subscription = ?1 and d.state in ('waiting', 'running', 'retrying'))
        or exists (select 1 from postrider_delivery d indexed by postrider_delivery_key
                   where d.subscription = ?1 and d.holds)) as open
from postrider_subscription s where s.name = ?1
