-- Deletes the deliveries of events that are gone. Lock: the database's write lock. Index: postrider_delivery_event.
-- Parameters: ?1 a JSON array of ids.
delete from postrider_delivery where id in (select value from json_each(?1))
