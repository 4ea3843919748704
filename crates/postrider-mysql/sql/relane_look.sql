-- How far a change of lanes is. Lock: none of its own. Index: the primary keys.
-- Parameters: ?1 subscription, ?2 the time.
select s.lanes_next, s.target,
       (select count(*) from postrider_lane l
        where l.subscription = ?1 and l.lease_owner is not null and l.lease_until > ?2
          and l.lease_until <= ?2 + l.lease_for + 1000000) as leased,
       (select count(*) from postrider_lane l where l.subscription = ?1 and l.position <> s.target) as behind,
       (select max(l.lease_epoch) from postrider_lane l where l.subscription = ?1) as epoch
from postrider_subscription s where s.name = ?1
