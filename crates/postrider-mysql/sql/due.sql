-- The deliveries of a lane that are to be tried now, by id. Lock: none. Index: which of them are due, and by which index they are found, is
-- in the parts: due_by_key.sql, due_in_lane.sql and due_each.sql, one for each order policy; event_id_is_unique once a row.
-- Parameters: ?1 subscription, ?2 lane, ?3 limit, ?4 the time, ?5 epoch, ?6 a JSON array of the first rows (see due_head.sql), ?7 how
--   many rows of each key come, without the first.
select d.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts,
       d.state, d.attempts, d.first_failed_at, d.error_code, d.past
from (
{chosen}) d
straight_join postrider_event e on e.event_id = d.event_id
where not d.blocked
order by d.id limit ?3
