-- The next events after a number, as far as it takes to tell whose they are. Lock: none. Index: the primary keys of the log.
-- Parameters: ?1 number, ?2 rows at most.
select n.seq, e.stream, e.event_type, e.recorded_at, coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)) as ordering_key
from (select seq, id from postrider_numbered where seq > ?1 order by seq limit ?2) n
straight_join postrider_event e on e.id = n.id
order by n.seq
