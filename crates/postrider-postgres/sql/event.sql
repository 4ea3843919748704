-- One event, in the log or in the archive. Lock: none. Index: event_id_is_unique, archive_event. Parameters: $1 event id.
select e.id, e.event_id, e.stream::text, e.event_type::text, e.aggregate_type::text, e.aggregate_id::text,
       e.ordering_key::text, e.sequence, e.payload, e.content_type::text, e.content, e.headers, e.occurred_at, e.recorded_at,
       e.max_attempts, false as archived
from {schema}.event e where e.event_id = $1
union all
select a.id, a.event_id, a.stream, a.event_type, a.aggregate_type, a.aggregate_id, a.ordering_key, a.sequence, a.payload,
       a.content_type, a.content, a.headers, a.occurred_at, a.recorded_at, a.max_attempts, true
from {schema}.archive a where a.event_id = $1
