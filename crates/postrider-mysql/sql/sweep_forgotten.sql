-- Writes down up to when a consumer's marks are gone. Lock: its row. Index: the primary key.
-- Parameters: ?1 consumer, ?2 when the last of them was made.
insert into postrider_forgotten (consumer, handled_at) values (?1, ?2)
on duplicate key update handled_at = greatest(handled_at, values(handled_at))
