-- Writes down how far retention has got in the log. Lock: the one row. Index: the primary keys of the log.
-- Parameters: ?1 a JSON array of numbers.
insert into postrider_swept (one, id, recorded_at)
select 1, max(n.seq), coalesce(max(timestampdiff(microsecond, '1970-01-01 00:00:00', e.recorded_at)), 0)
from json_table(?1, '$[*]' columns (seq bigint path '$')) c
straight_join postrider_numbered n on n.seq = c.seq
left join postrider_event e on e.id = n.id
having max(n.seq) is not null
on duplicate key update id = greatest(postrider_swept.id, values(id)),
    recorded_at = greatest(postrider_swept.recorded_at, values(recorded_at))
