-- The same for many short runs: the events of these ids. Lock: none. Index: the primary key of the log, once an event.
-- Parameters: ?1 a JSON array of ids, ?2 nothing, ?3 lanes, ?4 lane.
select {columns}
from json_table(?1, '$[*]' columns (id bigint path '$')) c
straight_join postrider_event e on e.id = c.id
where ?2 is null {lane}
