-- The lowest id of the events that come after a number, or that some lane has not read yet or still has running. Lock: none.
-- Index: the runs after it; delivery_state, over the running ones alone, and event_id_is_unique.
-- Parameters: ?1 the number, ?2 whether only what is unread or running is asked for.
select coalesce(least(unread.lowest, running.lowest), unread.lowest, running.lowest) as lowest
from (select min(r.id - r.length + 1) as lowest from postrider_run r
      where r.seq > ?1 and (not ?2 or r.seq > (select min(l.position) from postrider_lane l))) as unread
cross join (select min(e.id) as lowest from postrider_delivery d force index (delivery_state)
            straight_join postrider_event e on e.event_id = d.event_id
            where ?2 and d.state = 'running') as running
