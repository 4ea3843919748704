-- Reads what follows a position as an earlier snapshot saw it: the next part of many late rows, or, while lanes
-- change, what lies between a lane and the common position.
-- Lock, index: as in read.sql.
-- Parameters: $1 to $17 as in read.sql, $18 the snapshot, $19 the last fresh id it is to reach (the frontier, if no
--   fresh rows are wanted), $20 the floor of this cluster.
with late as materialized (
    select e.*
    from (select x from unnest($2::text[]::xid8[]) as c (x)
          where $3::boolean or pg_visible_in_snapshot(x, $18::text::pg_snapshot)) as ended
    cross join lateral (
        select * from {schema}.event e
        where (e.tx_id, e.id) > (ended.x, $4::bigint) and (e.tx_id, e.id) <= (ended.x, $1::bigint)
        order by e.tx_id, e.id limit $5::bigint) as e
    order by e.id limit $5::bigint
), fresh as materialized (
    select * from {schema}.event e
    where e.id > $1::bigint and e.id <= $19::bigint
      and (e.id <= $20::bigint or pg_visible_in_snapshot(e.tx_id, $18::text::pg_snapshot))
    order by e.id limit $5::bigint
)
select null::bigint as id, null::uuid as event_id, null::text as stream, null::text as event_type, null::text as aggregate_type,
       null::text as aggregate_id, null::text as ordering_key, null::bigint as sequence, null::json as payload,
       null::text as content_type, null::bytea as content, null::json as headers, null::timestamptz as occurred_at,
       null::timestamptz as recorded_at, null::integer as max_attempts, null::boolean as late, null::boolean as held,
       json_build_object(
           'stands', {stands},
           'recalled', coalesce((select paused or (lanes_next is not null and target is null) from {schema}.subscription where name = $6::text), true),
           'late', (select count(*) from late),
           'last_late', (select max(id) from late),
           'fresh', (select count(*) from fresh),
           'last_fresh', (select max(id) from fresh),
           'witness', (select json_build_object('number', w.id, 'id', w.event_id)
                       from (select * from fresh union all select * from late) as w order by w.id desc limit 1)) as head
union all
(select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
        e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts, true, {held}, null
 from late e {filter} order by e.id)
union all
(select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
        e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts, false, {held}, null
 from fresh e {filter} order by e.id)
