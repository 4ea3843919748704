-- When the first event was recorded that is still there between two ids. Lock: none. Index: the primary key.
-- Parameters: ?1 the first id, ?2 the last id.
select recorded_at from postrider_event where id between ?1 and ?2 order by id limit 1
