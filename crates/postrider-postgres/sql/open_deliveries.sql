-- Deliveries that did not simply succeed, by id and subscription. Lock: none. Index: delivery_dead or delivery_open, from each
-- subscription as many as a page has; the log by its primary key, once a row. {state} is the condition of that index: with a
-- parameter in its place it could not be used.
-- Parameters: $1 subscription, $2 type as a pattern, $3 error code, $4 from, $5 until, $6 and $7 after this id and
--   subscription, $8 limit. {event} is the log, or the log without what is wide.
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts,
       d.subscription, d.state, d.attempts, case when d.state = 'retrying' then d.next_at end as next_at, d.first_failed_at,
       d.last_attempt_at, d.error_code, d.error_message
from {schema}.subscription s
cross join lateral (
    select d.* from {schema}.delivery d
    cross join lateral (select e.event_type from {schema}.event e where e.id = d.id limit 1) as e
    where d.subscription = s.name and {state} and d.id >= $6::bigint
      and (d.id > $6::bigint or d.subscription > $7::text)
      and ($2::text is null or e.event_type like $2) and ($3::text is null or d.error_code = $3)
      and ($4::timestamptz is null or d.last_attempt_at >= $4) and ($5::timestamptz is null or d.last_attempt_at < $5)
    order by d.id limit $8::bigint) as d
join {event} e on e.id = d.id
where $1::text is null or s.name = $1
order by d.id, d.subscription limit $8::bigint
