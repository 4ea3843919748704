-- The deliveries of a lane that are to be tried now, by id.
-- Lock: none. Index: delivery_due finds the keys' heads, delivery_key walks a key. Under key order a key is due
-- when its first open row is; then its waiting rows come along, to be delivered behind it. Under strict order the
-- first open row of the lane decides for all. Without order each row stands for itself.
-- Parameters: $1 subscription, $2 lanes, $3 lane, $4 limit, $5 the time, if not the database's, $6 order policy.
with clock as materialized (
    select coalesce($5::timestamptz, clock_timestamp()) as now
), open as (
    select d.id, d.key, d.state, d.next_at
    from {schema}.delivery d
    where d.subscription = $1 and d.lane_hash % $2 = $3 and d.holds
), head as (
    select distinct on (case when $6 = 'strict' then '' else open.key end)
           open.key, open.state = 'waiting' or (open.state = 'retrying' and open.next_at <= clock.now) as due
    from open cross join clock
    order by case when $6 = 'strict' then '' else open.key end, open.id
), chosen as (
    select d.id, d.state, d.attempts, d.first_failed_at
    from {schema}.delivery d cross join clock
    where $6 = 'none' and d.subscription = $1 and d.lane_hash % $2 = $3 and d.state = 'retrying' and d.next_at <= clock.now
    union all
    select d.id, d.state, d.attempts, d.first_failed_at
    from {schema}.delivery d join head on head.due and (d.key = head.key or $6 = 'strict')
    where $6 <> 'none' and d.subscription = $1 and d.lane_hash % $2 = $3 and d.holds and d.state <> 'dead'
      and not exists (
          select from {schema}.delivery b
          where b.subscription = $1 and b.key = d.key and b.holds and b.id < d.id
            and (b.state = 'dead' or (b.state = 'retrying' and b.next_at > (select now from clock))))
)
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts,
       chosen.state, chosen.attempts, chosen.first_failed_at, (select now from clock) as now
from chosen join {schema}.event e on e.id = chosen.id
order by e.id limit $4
