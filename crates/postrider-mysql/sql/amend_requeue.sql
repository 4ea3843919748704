-- Requeues dead deliveries: tried at once, counted anew, in their old place. Lock: their rows. Index: delivery_next, over the
-- dead ones alone. Parameters: ?1 subscription, ?2 the event id, or null for all, ?3 the time.
update postrider_delivery
set state = 'retrying', attempts = 0, next_at = ?3, first_failed_at = null, requeued = requeued + 1,
    holds = (select s.order_policy <> 'none' from postrider_subscription s where s.name = ?1)
where subscription = ?1 and state = 'dead' and (?2 is null or event_id = ?2)
