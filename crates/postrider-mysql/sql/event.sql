-- One event, in the log or in the archive. Lock: none. Index: event_id_is_unique, archive_event.
-- Parameters: ?1 event id.
select r.seq - (r.id - e.id) as id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts, 0 as archived
from postrider_event e join postrider_run r on r.id = postrider_run_of(e.id) where e.event_id = ?1
union all
select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, content,
       headers, occurred_at, recorded_at, max_attempts, 1
from postrider_archive where event_id = ?1
