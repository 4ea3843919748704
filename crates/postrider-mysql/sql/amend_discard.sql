-- Discards dead deliveries: their keys go on. Lock: their rows. Index: the primary key.
-- Parameters: ?1 subscription, ?2 a JSON array of numbers.
update json_table(?2, '$[*]' columns (id bigint path '$')) c
straight_join postrider_delivery d on d.subscription = ?1 and d.id = c.id
set d.state = 'discarded', d.next_at = null
where d.state = 'dead'
