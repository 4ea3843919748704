-- Deletes events. Lock: the database's write lock. Index: the primary key of the log.
-- Parameters: ?1 a JSON array of ids.
delete from postrider_event where id in (select value from json_each(?1))
