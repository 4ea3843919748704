-- Discards dead deliveries: their keys go on. Lock: the database's write lock.
-- Index: postrider_delivery_dead, event_id_is_unique.
-- Parameters: ?1 subscription, ?2 the event id, or null for all.
update postrider_delivery indexed by postrider_delivery_dead
set state = 'discarded', holds = 0, next_at = null
where subscription = ?1 and state = 'dead'
  and id >= case when ?2 is null then 0
                 else coalesce((select e.id from postrider_event e where e.event_id = ?2), 0) end
  and id <= case when ?2 is null then 9223372036854775807
                 else coalesce((select e.id from postrider_event e where e.event_id = ?2), -1) end
