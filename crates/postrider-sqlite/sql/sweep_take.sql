-- The events that are about to be filed, in full. Lock: none of its own. Index: the primary key of the log.
-- Parameters: ?1 a JSON array of ids.
select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, content,
       headers, occurred_at, recorded_at, max_attempts
from postrider_event where id in (select value from json_each(?1)) order by id
