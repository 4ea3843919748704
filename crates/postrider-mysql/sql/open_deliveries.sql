-- Deliveries that did not simply succeed, by id and subscription. Lock: none. Index: delivery_state, over just these;
-- the log by event_id_is_unique, once a row. {where} names the states.
-- {wide} is what is wide of an event, or nothing in its place.
-- Parameters: ?1 subscription, ?2 type as a LIKE pattern, ?3 error code, ?4 from, ?5 until, ?6 and ?7 after this id and
--   subscription, ?8 limit.
select d.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, {wide}
       e.occurred_at, e.recorded_at, e.max_attempts,
       d.subscription, d.state, d.attempts, case when d.state = 'retrying' then d.next_at end as next_at, d.first_failed_at,
       d.last_attempt_at, d.error_code, d.error_message
from postrider_delivery d force index (delivery_state)
straight_join postrider_event e on e.event_id = d.event_id
where {where}
  and (?1 is null or d.subscription = ?1) and (?2 is null or e.event_type like ?2)
  and (?3 is null or d.error_code = ?3) and (?4 is null or d.last_attempt_at >= ?4) and (?5 is null or d.last_attempt_at < ?5)
  and (d.id > ?6 or (d.id = ?6 and d.subscription > ?7))
order by d.id, d.subscription limit ?8
