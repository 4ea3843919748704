-- How many events come again after an id: those that their lanes have read, of the first million. Lock: none.
-- Index: event_pkey, lane_pkey.
-- Parameters: $1 subscription, $2 after this id, $3 this cluster, $4 its floor, $5 rows at most.
with scanned as materialized (
    select e.id, e.tx_id, e.stream, e.event_type, e.ordering_key, e.aggregate_type, e.aggregate_id, e.recorded_at
    from {schema}.event e
    where e.id > $2::bigint and e.id <= (select max(l.frontier) from {schema}.lane l where l.subscription = $1::text)
    order by e.id limit $5::bigint
)
select count(*) as events, min(e.recorded_at) as first_recorded_at, (select count(*) from scanned) < $5::bigint as counted
from {schema}.subscription s cross join scanned e
join {schema}.lane l on l.subscription = s.name and l.lane = case when s.lanes = 1 then 0 else {schema}.hash_of(
    {schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id)) % s.lanes end
where s.name = $1::text
  and (cardinality(s.streams) = 0 or e.stream like any (s.streams))
  and (cardinality(s.types) = 0 or e.event_type like any (s.types))
  and (s.since is null or e.recorded_at >= s.since)
  and e.id <= l.frontier
  and ((l.system = $3::bigint and e.id <= $4::bigint) or pg_visible_in_snapshot(e.tx_id, l.snapshot))
