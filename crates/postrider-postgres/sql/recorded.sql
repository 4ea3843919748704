-- The events of the log after an id, for tests and tools. Lock: none. Index: event_pkey.
-- Parameters: $1 after this id, $2 limit.
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts
from {schema}.event e where e.id > $1 order by e.id limit $2
