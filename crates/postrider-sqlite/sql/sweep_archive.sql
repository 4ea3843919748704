-- Copies events into the archive. Lock: the database's write lock. Index: the primary key of the log.
-- Parameters: ?1 a JSON array of ids, ?2 the time.
insert into postrider_archive
select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, max_attempts,
       occurred_at, recorded_at, headers, payload, content_type, content, ?2
from postrider_event where id in (select value from json_each(?1))
