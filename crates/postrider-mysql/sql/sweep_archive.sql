-- Copies events into the archive, under their numbers. Lock: the new rows. Index: the primary key of the log.
-- Parameters: ?1 a JSON array of [number, id], ?2 the time.
insert into postrider_archive
select c.seq, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.max_attempts,
       e.occurred_at, e.recorded_at, e.headers, e.payload, e.content_type, e.content, '1970-01-01 00:00:00' + interval ?2 microsecond
from json_table(?1, '$[*]' columns (seq bigint path '$[0]', id bigint path '$[1]')) c
straight_join postrider_event e on e.id = c.id
