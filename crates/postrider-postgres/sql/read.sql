-- Reads what follows a position, in one statement and so in one snapshot.
-- Lock: none. Index: event_tx for the late rows, event_pkey for the fresh ones; neither depends on statistics:
--   a row comparison on (tx_id, id) can't be answered by the primary key, and relay sessions scan no table. The lane's row is
--   found by its ctid: see settle.sql.
-- Parameters: $1 frontier, $2 xids in flight at the position's snapshot, $3 whether they are of another cluster,
--   $4 only late rows after this id, $5 rows scanned at most (late and fresh each), $6 subscription;
--   $7 to $13 prove that the lane stands where the lease says, in this statement's own snapshot: ctid, lane, epoch, owner,
--   the lease's position, where this read begins (a read ahead begins behind it), system;
--   with a filter: $14 streams, $15 types, $16 since, $17 lanes.
-- Fresh rows end at the sequence's last value. A row above it was written without the trigger; if it became the frontier, new
-- events would get ids below it and never be read.
-- It is for leases that know of no change of lanes: one that is under way wants them back.
-- With a filter the fresh rows are those of a range of ids, from the first on, that ends at the last visible one at most: an
-- id below a visible one has been handed out, so that the frontier may be in a gap. It spares counting rows that nobody gets.
-- Rows come by id, the late ones first: the client stops taking them when their bytes are enough.
-- The first row is about the read itself. It names a row at or above the new frontier, if there is a fresh one: the
-- witness by which settle.sql proves that this read is of its database's past. The xid is taken in the select list, after the snapshot, and only if
-- there is something to read; in a WHERE the planner would take it before.
with late as materialized (
    select e.*
    from (select x from unnest($2::text[]::xid8[]) as c (x)
          where $3::boolean or pg_visible_in_snapshot(x, (select pg_current_snapshot()))) as ended
    cross join lateral (
        select * from {schema}.event e
        where (e.tx_id, e.id) > (ended.x, $4::bigint) and (e.tx_id, e.id) <= (ended.x, $1::bigint)
        order by e.tx_id, e.id limit $5::bigint) as e
    order by e.id limit $5::bigint
){scan}
select null::bigint as id, null::uuid as event_id, null::text as stream, null::text as event_type, null::text as aggregate_type,
       null::text as aggregate_id, null::text as ordering_key, null::bigint as sequence, null::json as payload,
       null::text as content_type, null::bytea as content, null::json as headers, null::timestamptz as occurred_at,
       null::timestamptz as recorded_at, null::integer as max_attempts, null::boolean as late, null::boolean as held,
       json_build_object(
           'stands', {stands},
           'recalled', coalesce((select paused or lanes_next is not null from {schema}.subscription where name = $6::text), true),
           'snapshot', pg_current_snapshot()::text,
           'bound', case when exists (select from late)
                              or (select e.id from {schema}.event e where e.id > $1::bigint and e.id <= {end} order by e.id limit 1) is not null
                         then pg_current_xact_id()::text end,
           'late', (select count(*) from late),
           'last_late', (select max(id) from late),
           'fresh', {scanned}::bigint,
           'last_fresh', {scanned_to}::bigint,
           'witness', {witness}) as head
union all
(select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
        e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts, true, {held}, null
 from late e {filter} order by e.id)
union all
(select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
        e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts, false, {held}, null
 from {fresh})
