-- Writes down up to when a consumer's marks are gone. Lock: the database's write lock. Index: the primary key.
-- Parameters: ?1 consumer, ?2 when the last of them was made.
insert into postrider_forgotten (consumer, handled_at) values (?1, ?2)
on conflict (consumer) do update set handled_at = max(handled_at, excluded.handled_at)
