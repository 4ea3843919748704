-- Reads what follows a position. Lock: none; a reader sees one snapshot and stops no writer.
-- Index: the primary key of the log. One writer at a time means that an id below one that was seen can't appear
-- later, so there are no late rows. Lanes and filters are told apart by the reader, after this.
-- Parameters: ?1 position, ?2 rows at most, ?3 the last id it is to reach.
select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type,
       content, headers, occurred_at, recorded_at, max_attempts
from postrider_event where id > ?1 and id <= ?3 order by id limit ?2
