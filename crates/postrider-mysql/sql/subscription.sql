-- A subscription. Lock: none. Index: the primary key, delivery_open, delivery_key. Parameters: ?1 subscription.
select streams, types, order_policy, on_dead, lanes, lanes_next, target, since, wanted_until,
       (exists (select 1 from postrider_delivery d force index (delivery_open) where d.subscription = ?1 and d.open = true)
        or exists (select 1 from postrider_delivery d force index (delivery_key) where d.subscription = ?1 and d.holds = true)) as open
from postrider_subscription where name = ?1
