-- Prolongs a lease. Lock: the lane's row. By ctid, as in settle.sql. Who else holds lanes is looked at only if one is wanted.
-- Parameters: $1 ctid, $2 subscription, $3 lane, $4 epoch, $5 owner, $6 lease in microseconds, $7 the time, if not
--   the database's, $8 how far the holder is reading, $9 where the lane must stand, $10 why the destination is away, or null.
with clock as materialized (
    select coalesce($7::timestamptz, clock_timestamp()) as now
)
update {schema}.lane l
set lease_until = clock.now + $6::bigint * interval '1 microsecond',
    lease_for = $6::bigint * interval '1 microsecond', reading = greatest(l.reading, $8::bigint),
    away = $10::text, away_since = case when $10::text is not null then coalesce(l.away_since, clock.now) end
from clock
where {by_ctid} l.subscription = $2::text and l.lane = $3::integer and l.lease_epoch = $4::bigint and l.lease_owner = $5::text
      and l.position = $9
returning l.ctid::text as row_location, l.lease_until,
          (exists (select from {schema}.delivery d where d.subscription = $2::text and d.state in ('waiting', 'running', 'retrying'))
           or exists (select from {schema}.delivery d where d.subscription = $2::text and d.holds)) as open,
          (select s.paused or (s.lanes_next is not null and (s.target is null or s.target = l.position))
                  or case when s.wanted_until > clock.now
                          then {schema}.gives_way($2::text, $5::text, $3::integer, clock.now) else false end
           from {schema}.subscription s where s.name = $2::text) as recalled
