-- The dead deliveries of a subscription. Lock: none. Index: delivery_next, over the dead ones alone.
-- Parameters: ?1 subscription, ?2 an event id, if only that one is wanted.
select id, event_id from postrider_delivery force index (delivery_next)
where subscription = ?1 and state = 'dead' and (?2 is null or event_id = ?2)
