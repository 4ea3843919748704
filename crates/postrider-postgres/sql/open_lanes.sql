-- Makes lanes, all at one position. Their history begins with a row each that covers nothing: from then on this is
-- the generation of lanes that the horizon of retention goes by.
-- Parameters: $1 subscription, $2 lanes, $3 position, $4 frontier, $5 snapshot, $6 system, $7 epoch, $8 the time, if
--   not the database's.
with made as (
    insert into {schema}.lane (subscription, lane, position, frontier, snapshot, system, lease_epoch)
    select $1, n, $3, $4::bigint, $5::text::pg_snapshot, $6, $7 from generate_series(0, $2::integer - 1) as n
    returning lane
)
insert into {schema}.settled_batch (subscription, lane, lanes, first_id, last_id, count, settled_at, settled_by)
select $1, lane, $2, $4::bigint + 1, $4::bigint, 0, coalesce($8::timestamptz, clock_timestamp()), '' from made
