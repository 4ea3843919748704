-- The same for one lane of several: what belongs to others stays in the database. Lock, index: as in read.sql.
-- Parameters: ?1 position, ?2 the last number, ?3 lanes, ?4 lane.
select n.seq, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts, n.late
from postrider_numbered n straight_join postrider_event e on e.id = n.id
where n.seq > ?1 and n.seq <= ?2
  and crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))) % ?3 = ?4
order by n.seq
