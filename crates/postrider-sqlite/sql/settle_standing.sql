-- How a holder stands after a settle. Lock: none of its own. Index: the primary key, postrider_delivery_key.
-- Parameters: ?1 subscription, ?2 the new position.
select s.paused or (s.lanes_next is not null and (s.target is null or s.target = ?2)) as recalled,
       exists (select 1 from postrider_delivery d indexed by postrider_delivery_key where d.subscription = ?1 and d.holds) as open
from postrider_subscription s where s.name = ?1
