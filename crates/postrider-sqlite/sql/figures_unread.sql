-- The next events after an id, as far as it takes to tell whose they are. Lock: none. Index: the primary key of the log.
-- Parameters: ?1 id, ?2 rows at most.
select id, stream, event_type, recorded_at, coalesce(ordering_key, aggregate_type || ':' || aggregate_id) as key
from postrider_event where id > ?1 order by id limit ?2
