-- Writes down how far retention has got in the log. Lock: the one row. Index: the primary key of the log.
-- Parameters: ?1 a JSON array of [number, id].
insert into postrider_swept (one, id, recorded_at)
select 1, max(c.seq), coalesce(max(timestampdiff(microsecond, '1970-01-01 00:00:00', e.recorded_at)), 0)
from json_table(?1, '$[*]' columns (seq bigint path '$[0]', id bigint path '$[1]')) c
straight_join postrider_event e on e.id = c.id
having max(c.seq) is not null
on duplicate key update id = greatest(postrider_swept.id, values(id)),
    recorded_at = greatest(postrider_swept.recorded_at, values(recorded_at))
