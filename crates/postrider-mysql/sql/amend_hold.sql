-- Lets dead deliveries hold their keys, or not, before they are requeued or discarded. Lock: their rows. Index: the primary key.
-- Parameters: ?1 subscription, ?2 a JSON array of numbers, ?3 whether they hold if there is an order.
update json_table(?2, '$[*]' columns (id bigint path '$')) c
straight_join postrider_delivery d on d.subscription = ?1 and d.id = c.id
set d.holds = ?3 and (select s.order_policy <> 'none' from postrider_subscription s where s.name = ?1)
where d.state = 'dead'
