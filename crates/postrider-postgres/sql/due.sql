-- The deliveries of a lane that are to be tried now, by id; and, in the first row, what the look itself found. It costs what it
-- returns, whatever is open: what a look finds first has a time in `look_at`, and nothing else has (see migration 7).
-- Lock: none. Index: which deliveries are due, and by which index they are found, is in the parts: due_by_key.sql,
-- due_in_lane.sql and due_each.sql, one for each order policy; the next one's time is found by delivery_look, whether anything
-- holds by delivery_lane. A row that waits behind a dead one counts as neither due nor next.
-- One that is running under the lease's own epoch is in hand: it holds up what is behind it and never comes.
-- Parameters: $1 subscription, $2 lane, $3 limit, $4 the time, if not the database's,
--   $5 to $9 prove that the lane stands where the lease says: ctid, epoch, owner, position, system.
with clock as materialized (
    select coalesce($4::timestamptz, clock_timestamp()) as now
), {chosen}
select null::bigint as id, null::uuid as event_id, null::text as stream, null::text as event_type,
       null::text as aggregate_type, null::text as aggregate_id, null::text as ordering_key, null::bigint as sequence,
       null::json as payload, null::text as content_type, null::bytea as content, null::json as headers,
       null::timestamptz as occurred_at, null::timestamptz as recorded_at, null::integer as max_attempts,
       null::text as state, null::integer as attempts, null::timestamptz as first_failed_at, null::text as error_code, null::text as past,
       (select now from clock) as now,
       (select d.look_at from {schema}.delivery d
        where d.subscription = $1::text and d.lane = $2::integer and d.look_at > (select now from clock)
        order by d.look_at, d.id limit 1) as next_at,
       (select d.id from {schema}.delivery d
        where d.subscription = $1::text and d.lane = $2::integer and d.holds
        order by d.id limit 1) is not null as holds,
       {stands} as stands
union all
(select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
        e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts,
        chosen.state, chosen.attempts, chosen.first_failed_at, chosen.error_code, chosen.past, (select now from clock), null, null, null
 from (select * from chosen order by id limit $3::bigint) as chosen join {schema}.event e on e.id = chosen.id and e.event_id = chosen.event_id
 order by e.id)
