-- The events that are about to be filed, in full. Lock: none of its own. Index: the primary key of the log.
-- Parameters: ?1 a JSON array of [number, id].
select c.seq, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts
from json_table(?1, '$[*]' columns (seq bigint path '$[0]', id bigint path '$[1]')) c
straight_join postrider_event e on e.id = c.id
order by c.seq
