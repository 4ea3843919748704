-- The deliveries of a lane that are to be tried now, by id. It costs what it returns, whatever is open: what a look finds first has a
-- time in `look_at`, and nothing else has (see migration 5).
-- Lock: none. Index: which deliveries are due, and by which index they are found, is in the parts: due_by_key.sql, due_in_lane.sql and
-- due_each.sql, one for each order policy; named, because without statistics SQLite goes through the primary key, and so through
-- all that was ever retried. The log by its primary key, once a row: by its event id as well as its number, because after a
-- set-back another event may have that number. One that is running under the lease's own epoch is in hand: it holds up what is
-- behind it and never comes.
-- Parameters: ?1 subscription, ?2 lane, ?3 limit, ?4 the time, ?5 epoch.
with {chosen}
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts,
       d.state, d.attempts, d.first_failed_at, d.error_code, d.past
from (select * from chosen order by id limit ?3) d cross join postrider_event e on e.id = d.id and e.event_id = d.event_id
order by e.id
