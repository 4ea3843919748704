-- A subscription. Lock: none. Index: the primary key, postrider_delivery_due, postrider_delivery_key. Parameters: ?1 subscription.
select streams, types, order_policy, on_dead, lanes, lanes_next, target, since, wanted_until,
       (exists (select 1 from postrider_delivery d indexed by postrider_delivery_due
                where d.subscription = ?1 and d.state in ('waiting', 'running', 'retrying'))
        or exists (select 1 from postrider_delivery d indexed by postrider_delivery_key
                   where d.subscription = ?1 and d.holds)) as open
from postrider_subscription where name = ?1
