-- One event, in the log or in the archive. Lock: none. Index: event_id_is_unique, postrider_archive_event.
-- Parameters: ?1 event id.
select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, content,
       headers, occurred_at, recorded_at, max_attempts, 0 as archived
from postrider_event where event_id = ?1
union all
select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, content,
       headers, occurred_at, recorded_at, max_attempts, 1
from postrider_archive where event_id = ?1
