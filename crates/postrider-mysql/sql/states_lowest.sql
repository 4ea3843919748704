-- The lowest id of the events that come after a number, or that some lane has not read yet. Lock: none. Index: the runs after it.
-- Parameters: ?1 the number, ?2 whether only what is unread is asked for.
select min(r.id - r.length + 1) as lowest from postrider_run r
where r.seq > ?1 and (not ?2 or r.seq > (select min(l.position) from postrider_lane l))
