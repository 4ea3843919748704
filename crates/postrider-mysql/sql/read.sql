-- Reads what follows a position, for a lane of one. Lock: none; a reader sees one snapshot and stops no writer.
-- Index: the primary keys of the log. Numbers are committed in their order, so one below another that was seen can't
-- appear later. Filters are told apart by the reader, after this.
-- Parameters: ?1 position, ?2 rows at most, ?3 the last number it is to reach.
select n.seq, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts, n.late
from (select seq, id, late from postrider_numbered where seq > ?1 and seq <= ?3 order by seq limit ?2) n
straight_join postrider_event e on e.id = n.id
order by n.seq
