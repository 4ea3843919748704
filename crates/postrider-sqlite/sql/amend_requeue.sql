-- Requeues dead deliveries: tried at once, counted anew, in their old place. Lock: the database's write lock.
-- Index: postrider_delivery_dead, event_id_is_unique.
-- Parameters: ?1 subscription, ?2 the event id, or null for all, ?3 the time.
update postrider_delivery indexed by postrider_delivery_dead
set state = 'retrying', attempts = 0, next_at = ?3, first_failed_at = null, requeued = requeued + 1,
    holds = (select order_policy <> 'none' from postrider_subscription where name = ?1)
where subscription = ?1 and state = 'dead'
  and id >= case when ?2 is null then 0
                 else coalesce((select e.id from postrider_event e where e.event_id = ?2), 0) end
  and id <= case when ?2 is null then 9223372036854775807
                 else coalesce((select e.id from postrider_event e where e.event_id = ?2), -1) end
