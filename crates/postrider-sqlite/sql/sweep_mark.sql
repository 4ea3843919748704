-- Writes down how far retention has got in the log. Lock: the database's write lock. Index: the primary key of the log.
-- Parameters: ?1 a JSON array of ids.
insert into postrider_swept (one, id, recorded_at)
select 1, max(e.id), max(e.recorded_at) from postrider_event e where e.id in (select value from json_each(?1))
on conflict (one) do update set id = max(id, excluded.id), recorded_at = max(recorded_at, excluded.recorded_at)
