-- Says that a relay found no lane free while another holds at least two more than it: for 10 seconds that one is told to give
-- one up, and nobody with more lanes than this relay gets one. Lock: the subscription's row, and only if it is written: what
-- was said already, less than 5 seconds ago and of no more lanes, stands; so a relay that only stands by writes nothing.
-- Index: subscription_pkey, lane_pkey.
-- Parameters: $1 subscription, $2 owner, $3 the time, if not the database's.
with clock as materialized (
    select coalesce($3::timestamptz, clock_timestamp()) as now
), standing as materialized (
    select coalesce(max(h.lanes) filter (where h.owner = $2::text), 0) as own,
           coalesce(max(h.lanes) filter (where h.owner <> $2::text), 0) as most, coalesce(sum(h.lanes), 0) as held
    from clock cross join lateral {schema}.holders($1::text, clock.now) as h
)
update {schema}.subscription s
set wanted_with = standing.own, wanted_until = clock.now + interval '10 seconds'
from clock, standing
where s.name = $1::text and not s.paused and s.lanes_next is null
  and standing.held = s.lanes and standing.most >= standing.own + 2
  and (s.wanted_until is null or s.wanted_with > standing.own
       or s.wanted_until <= clock.now + interval '5 seconds' or s.wanted_until > clock.now + interval '11 seconds')
