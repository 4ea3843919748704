-- Settles a batch: position, settled batch, deliveries, in one statement; or nothing.
-- Lock: the lane's row. While somebody holds a transaction open, dead versions of that row can't be removed and
-- its index entry leads through all of them; its ctid leads straight to it. Who else holds lanes is looked at only if one
-- is wanted.
-- {by_ctid} is `l.ctid = $1::text::tid and`, or, when that found nothing, a condition that is always true.
-- Parameters: $1 ctid, $2 subscription, $3 lane, $4 epoch, $5 owner, $6 from, $7 to, $8 frontier, $9 snapshot,
--   $10 system, $11 reading, $12 the time, if not the database's, $13 first id, $14 last id, $15 late ids, $16 count;
--   $17 and $18 the id and event id of the batch's witness, $19 the target of a change of lanes, if one is under way, $20 system,
--   $21 the snapshot of the batch's read, if it is of this system, $22 the events of which effects must be marked in the inbox;
--   with deliveries: $23 ids, $24 event ids, $25 states, $26 attempts, $27 retry in microseconds, $28 codes, $29 messages,
--   $30 past tries, $31 and $32 the ids and event ids of running ones that simply succeeded.
-- What a relay has in memory may be of a past that never was: a standby without it was promoted, the database was set back, or
-- there is another server behind the address. Epoch and position prove that the lane stands where the batch began. The witness
-- proves that the log goes as far as the batch: a row with this id and event id, at or above the new frontier. Ids come from a
-- logged sequence, so a server that has that row hands out only higher ids from then on, and whatever is below was read
-- or is found, late. A batch of late rows alone leaves the frontier where it is; one of them is its witness.
-- A prepared transaction may have ended on the old server and be open again on the new one: what the read's snapshot shows as
-- ended must not be running. And an event may be here while its effect is gone with the old server: its mark must be here, too.
with clock as materialized (
    select coalesce($12::timestamptz, clock_timestamp()) as now
), moved as (
    update {schema}.lane l
    set position = $7::text, frontier = $8::bigint, snapshot = $9::text::pg_snapshot, system = $10::bigint, reading = greatest($8::bigint, $11::bigint),
        claims_since_settle = 1, settled_at = clock.now
    from clock
    where ($17::bigint is null or exists (select from {schema}.event w where w.id = $17::bigint and w.event_id = $18::uuid))
      and ($19::text is null or exists (select from {schema}.subscription t where t.name = $2::text and t.target = $19::text))
      and {schema}.is_at($20::bigint)
      and ($21::text is null
           or (pg_snapshot_xmax($21::text::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
               and not exists (select from pg_snapshot_xip(pg_current_snapshot()) as r (x)
                               where pg_visible_in_snapshot(r.x, $21::text::pg_snapshot))))
      and ($22::uuid[] is null
           or (select count(*) from {schema}.inbox i where i.consumer = $2::text and i.event_id = any ($22::uuid[])) = cardinality($22::uuid[]))
      and {by_ctid} l.subscription = $2::text and l.lane = $3::integer and l.lease_epoch = $4::bigint and l.lease_owner = $5::text and l.position = $6::text
    returning l.ctid::text as row_location, l.position
), subscription as (
    select s.lanes,
           s.paused or (s.lanes_next is not null and (s.target is null or s.target = $7::text))
               or case when s.wanted_until > clock.now
                       then {schema}.gives_way($2::text, $5::text, $3::integer, clock.now) else false end as recalled
    from {schema}.subscription s cross join clock where s.name = $2::text
), batch as (
    insert into {schema}.settled_batch (subscription, lane, lanes, first_id, last_id, late, count, settled_at, settled_by)
    select $2::text, $3::integer, subscription.lanes, $13::bigint, $14::bigint, $15::bigint[], $16::integer, clock.now, $5::text
    from moved, clock, subscription where $6::text <> $7::text
){deliveries}
select moved.row_location, subscription.recalled,
       (exists (select from {schema}.delivery d where d.subscription = $2::text and d.state in ('waiting', 'running', 'retrying'))
           or exists (select from {schema}.delivery d where d.subscription = $2::text and d.holds)) as open
from moved, subscription
