-- Lets dead deliveries hold their keys, or not, before they are requeued or discarded. Lock: their rows. Index: delivery_next, over the
-- dead ones alone. Parameters: ?1 subscription, ?2 the event id, or null for all, ?3 whether they hold if there is an order.
update postrider_delivery
set holds = ?3 and (select s.order_policy <> 'none' from postrider_subscription s where s.name = ?1)
where subscription = ?1 and state = 'dead' and (?2 is null or event_id = ?2)
