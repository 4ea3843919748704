-- The events of a run, or of a part of it, by their ids. Lock: none; a reader stops no writer. Index: the primary key of the log.
-- {columns} are those that are wanted, {lane} tells the events of one lane apart. Filters are told apart by the reader.
-- Parameters: ?1 the first id, ?2 the last, ?3 lanes, ?4 lane.
select {columns}
from postrider_event e
where e.id between ?1 and ?2 {lane}
order by e.id
