-- Discards dead deliveries: their keys go on. Lock: their rows. Index: delivery_next, over the dead ones alone.
-- Parameters: ?1 subscription, ?2 the event id, or null for all.
update postrider_delivery
set state = 'discarded', holds = false, next_at = null
where subscription = ?1 and state = 'dead' and (?2 is null or event_id = ?2)
