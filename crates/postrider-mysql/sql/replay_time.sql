-- The first event that was recorded at a time or later. Lock: none of its own. Index: the primary keys of the log, from its
-- beginning on: exact, whatever the clock did. Parameters: ?1 the time.
select min(n.seq) as id from postrider_numbered n straight_join postrider_event e on e.id = n.id
where e.recorded_at >= '1970-01-01 00:00:00' + interval ?1 microsecond
