-- The deliveries of a lane that are to be tried now, by id; and, in the first row, what the look itself found.
-- Lock: none. Index: which deliveries are due, and by which index they are found, is in the parts: due_by_key.sql,
-- due_in_lane.sql and due_each.sql, one for each order policy; the next one's time is found by delivery_due, whether anything
-- holds by delivery_key (in its order, so that the first one found ends the search). A row whose time has come but that waits behind a dead one counts as neither due nor next.
-- Parameters: $1 subscription, $2 lanes, $3 lane, $4 limit, $5 the time, if not the database's,
--   $6 to $10 prove that the lane stands where the lease says: ctid, epoch, owner, position, system.
with recursive clock as materialized (
    select coalesce($5::timestamptz, clock_timestamp()) as now
), {chosen}
select null::bigint as id, null::uuid as event_id, null::text as stream, null::text as event_type,
       null::text as aggregate_type, null::text as aggregate_id, null::text as ordering_key, null::bigint as sequence,
       null::json as payload, null::text as content_type, null::bytea as content, null::json as headers,
       null::timestamptz as occurred_at, null::timestamptz as recorded_at, null::integer as max_attempts,
       null::text as state, null::integer as attempts, null::timestamptz as first_failed_at, null::text as error_code,
       (select now from clock) as now,
       (select d.next_at from {schema}.delivery d
        where d.subscription = $1::text and d.state = 'retrying' and d.next_at > (select now from clock)
          and d.lane_hash % $2::integer = $3::integer
        order by d.next_at limit 1) as next_at,
       (select d.id from {schema}.delivery d
        where d.subscription = $1::text and d.holds and d.lane_hash % $2::integer = $3::integer
        order by d.key, d.id limit 1) is not null as holds,
       {stands} as stands
union all
(select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
        e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts,
        chosen.state, chosen.attempts, chosen.first_failed_at, chosen.error_code, (select now from clock), null, null, null
 from (select * from chosen order by id limit $4::bigint) as chosen join {schema}.event e on e.id = chosen.id and e.event_id = chosen.event_id
 order by e.id)
