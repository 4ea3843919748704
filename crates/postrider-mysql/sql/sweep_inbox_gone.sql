-- Forgets what a consumer has handled. Lock: those rows. Index: the primary key.
-- Parameters: ?1 consumer, ?2 a JSON array of event ids in hexadecimal.
delete i from json_table(?2, '$[*]' columns (event_id varchar(32) path '$')) c
straight_join postrider_inbox i on i.consumer = ?1 and i.event_id = unhex(c.event_id)
