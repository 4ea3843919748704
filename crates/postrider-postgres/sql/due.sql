-- The deliveries of a lane that are to be tried now, by id.
-- Lock: none. Which they are, and by which index they are found, is in the parts: due_by_key.sql, due_in_lane.sql and
-- due_each.sql, one for each order policy.
-- Parameters: $1 subscription, $2 lanes, $3 lane, $4 limit, $5 the time, if not the database's.
with recursive clock as materialized (
    select coalesce($5::timestamptz, clock_timestamp()) as now
), {chosen}
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts,
       chosen.state, chosen.attempts, chosen.first_failed_at, (select now from clock) as now
from (select * from chosen order by id limit $4::bigint) as chosen join {schema}.event e on e.id = chosen.id
order by e.id
