-- Deletes the runs whose events are all gone. Lock: those rows. Index: the primary keys. Parameters: ?1 the last number that
-- retention took.
delete r
from postrider_run r left join postrider_event e on e.id between r.id - r.length + 1 and r.id
where r.seq <= ?1 and e.id is null
