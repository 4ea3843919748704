-- Claims one free lane. Lock: that lane's row, skipping what others hold, and its subscription's, shared: a change of lanes
-- that fences it meanwhile is waited for and seen. The subscription first, as a change of lanes does. Index: lane_pkey.
-- A lease that lasts longer from now than it was given for (and a second) is void: the clock went back. The clock is
-- read in the condition itself, not before: when another claim was faster, the condition is evaluated again on the new
-- row, and a time read earlier would take that row's lease for one from the future.
-- While somebody with so many lanes wants one (see want.sql), who holds more gets none; the lanes are counted only then.
-- Parameters: $1 subscription, $2 owner, $3 lease in microseconds, $4 the time, if not the database's.
with free as (
    select l.subscription, l.lane, s.lanes, s.streams, s.types, s.since, s.order_policy, s.target, s.wanted_until
    from {schema}.lane l
    join {schema}.subscription s on s.name = l.subscription
    where l.subscription = $1 and not s.paused
      and (s.lanes_next is null or (s.target is not null and l.position <> s.target))
      and (l.lease_owner is null or l.lease_until <= coalesce($4::timestamptz, clock_timestamp())
           or l.lease_until > coalesce($4::timestamptz, clock_timestamp()) + l.lease_for + interval '1 second')
      and case when s.wanted_until > coalesce($4::timestamptz, clock_timestamp())
                    and s.wanted_until <= coalesce($4::timestamptz, clock_timestamp()) + interval '11 seconds'
               then coalesce((select h.lanes from {schema}.holders($1, coalesce($4::timestamptz, clock_timestamp())) as h
                              where h.owner = $2), 0) <= s.wanted_with
               else true end
    order by l.lease_until nulls first, l.lane
    limit 1 for share of s for update of l skip locked
)
update {schema}.lane l
set lease_owner = $2, lease_for = $3::bigint * interval '1 microsecond',
    lease_until = coalesce($4::timestamptz, clock_timestamp()) + $3::bigint * interval '1 microsecond',
    lease_epoch = l.lease_epoch + 1, claims_since_settle = l.claims_since_settle + 1, reading = 0,
    away = null, away_since = null
from free
where l.subscription = free.subscription and l.lane = free.lane
returning l.lane, free.lanes, l.lease_epoch, l.lease_until, l.position, l.claims_since_settle, l.ctid::text as row_location,
          (exists (select from {schema}.delivery d where d.subscription = $1 and d.state in ('waiting', 'running', 'retrying'))
           or exists (select from {schema}.delivery d where d.subscription = $1 and d.holds)) as open,
          free.streams, free.types, free.since, free.order_policy, free.target, free.wanted_until
