-- How large the events are that are about to be filed. Lock: none of its own. Index: the primary key of the log. The server reads
-- wide values for it, so that it is asked of a few at a time. One row for each that is asked of, whatever has become of it.
-- Parameters: ?1 a JSON array of [number, id].
select coalesce(length(e.payload), 0) + coalesce(length(e.content), 0) + coalesce(length(e.headers), 0) as size
from json_table(?1, '$[*]' columns (seq bigint path '$[0]', id bigint path '$[1]')) c
left join postrider_event e on e.id = c.id
order by c.seq
