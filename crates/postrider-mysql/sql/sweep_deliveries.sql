-- Deletes the deliveries of events that are gone. Lock: those rows. Index: delivery_event.
-- Parameters: ?1 a JSON array of [number, id].
delete d from json_table(?1, '$[*]' columns (seq bigint path '$[0]', id bigint path '$[1]')) c straight_join postrider_delivery d on d.id = c.seq
