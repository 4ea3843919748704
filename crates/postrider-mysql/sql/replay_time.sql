-- The first event that was recorded at a time or later. Lock: none of its own. Index: the runs from the beginning, and the log by
-- its primary key: exact, whatever the clock did. Parameters: ?1 the time.
select min(r.seq - (r.id - e.id)) as id
from postrider_run r straight_join postrider_event e on e.id between r.id - r.length + 1 and r.id
where e.recorded_at >= '1970-01-01 00:00:00' + interval ?1 microsecond
