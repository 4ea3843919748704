-- Settles a batch: position, settled batch, deliveries, in one statement; or nothing.
-- Lock: the lane's row. While somebody holds a transaction open, dead versions of that row can't be removed and
-- its index entry leads through all of them; its ctid leads straight to it. Who else holds lanes is looked at only if one
-- is wanted.
-- {by_ctid} is `l.ctid = $1::text::tid and`, or, when that found nothing, a condition that is always true.
-- Parameters: $1 ctid, $2 subscription, $3 lane, $4 epoch, $5 owner, $6 from, $7 to, $8 frontier, $9 snapshot,
--   $10 system, $11 reading, $12 the time, if not the database's, $13 first id, $14 last id, $15 late ids, $16 count;
--   $17 and $18 the id and event id of the batch's witness and $19 its bound, if it must be proved that the batch is of this
--   database's past;
--   with deliveries: $20 ids, $21 states, $22 attempts, $23 retry in microseconds, $24 codes, $25 messages.
with clock as materialized (
    select coalesce($12::timestamptz, clock_timestamp()) as now
), moved as (
    update {schema}.lane l
    set position = $7::text, frontier = $8::bigint, snapshot = $9::text::pg_snapshot, system = $10::bigint, reading = greatest($8::bigint, $11::bigint),
        claims_since_settle = 1, settled_at = clock.now
    from clock
    where ($17::bigint is null or exists (select from {schema}.event w where w.id = $17::bigint and w.event_id = $18::uuid))
      and ($19::text is null or pg_snapshot_xmax(pg_current_snapshot()) > $19::text::xid8)
      and {by_ctid} l.subscription = $2::text and l.lane = $3::integer and l.lease_epoch = $4::bigint and l.lease_owner = $5::text and l.position = $6::text
    returning l.ctid::text as cookie, l.position
), subscription as (
    select s.lanes, s.on_dead, s.order_policy,
           s.paused or (s.lanes_next is not null and (s.target is null or s.target = $7::text))
               or case when s.wanted_until > clock.now
                       then {schema}.gives_way($2::text, $5::text, $3::integer, clock.now) else false end as recalled
    from {schema}.subscription s cross join clock where s.name = $2::text
), batch as (
    insert into {schema}.settled_batch (subscription, lane, lanes, first_id, last_id, late, count, settled_at, settled_by)
    select $2::text, $3::integer, subscription.lanes, $13::bigint, $14::bigint, $15::bigint[], $16::integer, clock.now, $5::text
    from moved, clock, subscription where $6::text <> $7::text
){deliveries}
select moved.cookie, subscription.recalled,
       (exists (select from {schema}.delivery d where d.subscription = $2::text and d.state in ('waiting', 'retrying'))
           or exists (select from {schema}.delivery d where d.subscription = $2::text and d.holds)) as open
from moved, subscription
