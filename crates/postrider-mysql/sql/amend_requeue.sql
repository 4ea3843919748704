-- Requeues dead deliveries: tried at once, counted anew, in their old place. Lock: their rows. Index: the primary key.
-- Parameters: ?1 subscription, ?2 a JSON array of numbers, ?3 the time.
update json_table(?2, '$[*]' columns (id bigint path '$')) c
straight_join postrider_delivery d on d.subscription = ?1 and d.id = c.id
set d.state = 'retrying', d.attempts = 0, d.next_at = ?3, d.first_failed_at = null, d.requeued = d.requeued + 1
where d.state = 'dead'
