-- Makes a relay known, or says that it is still there, and forgets those that ended without a word long ago; returns the others,
-- and this one as it was before. Lock: its row; rows that another deletes are left to it. Index: the primary key; the table has a
-- row a relay.
-- Parameters: $1 id, $2 name, $3 host, $4 process, $5 version, $6 runs, $7 the time, if not the database's, $8 forgotten after
--   (seconds); also seen so far in the future, by a clock that was set back since.
with clock as materialized (
    select coalesce($7::timestamptz, clock_timestamp()) as now
), written as (
    insert into {schema}.relay as r (id, name, host, process, version, started_at, seen_at, runs)
    select $1::uuid, $2::text, $3::text, $4::bigint, $5::text, clock.now, clock.now, $6::text from clock
    on conflict (id) do update set seen_at = excluded.seen_at, runs = excluded.runs
    returning r.started_at, r.seen_at
), forgotten as (
    delete from {schema}.relay where id in (
        select o.id from {schema}.relay o cross join clock
        where o.id <> $1::uuid
          and (o.seen_at < clock.now - make_interval(secs => $8::float8) or o.seen_at > clock.now + make_interval(secs => $8::float8))
        for update of o skip locked)
)
select $1::uuid as id, $2::text as name, $3::text as host, $4::bigint as process, $5::text as version, written.started_at,
       written.seen_at, $6::text as runs, clock.now
from clock cross join written
union all
select o.id, o.name, o.host, o.process, o.version, o.started_at, o.seen_at, o.runs, clock.now
from {schema}.relay o cross join clock
where o.id <> $1::uuid
  and o.seen_at between clock.now - make_interval(secs => $8::float8) and clock.now + make_interval(secs => $8::float8)
