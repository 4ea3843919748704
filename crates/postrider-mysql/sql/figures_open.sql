-- What is open of a subscription, by stream. Lock: none. Index: delivery_open and delivery_next, event_id_is_unique once a
-- row. A waiting row that has a time in `look_at` is the first of its key (see migration 6); in strict order it is due only if it is the
-- first of its lane, by delivery_lane. Parameters: ?1 subscription, ?2 a time: those recorded before it are counted, too.
select stream, cast(sum(running) as signed) as processing, cast(sum(retrying) as signed) as retrying, cast(sum(dead) as signed) as dead, min(recorded_at) as oldest,
       cast(sum(attempts) as signed) as attempts,
       cast(coalesce(sum(recorded_at < '1970-01-01 00:00:00' + interval ?2 microsecond), 0) as signed) as earlier,
       cast(sum(waits) as signed) as waiting, min(next_at) as next_at, cast(sum(due) as signed) as due
from (
    select e.stream, d.state = 'running' as running, d.state <> 'running' as retrying, 0 as dead, e.recorded_at, d.attempts,
           d.state = 'waiting' as waits, case when d.state = 'retrying' then d.next_at end as next_at,
           case when d.state <> 'waiting' or d.look_at is null then 0
                when (select s.order_policy from postrider_subscription s where s.name = ?1) <> 'strict' then 1
                else d.id = (select k.id from postrider_delivery k force index (delivery_lane)
                             where k.subscription = ?1 and k.lane = d.lane and k.holds = true order by k.id limit 1) end as due
    from postrider_delivery d force index (delivery_open)
    straight_join postrider_event e on e.event_id = d.event_id
    where d.subscription = ?1 and d.open = true
    union all
    select e.stream, 0, 0, 1, null, 0, 0, null, 0
    from postrider_delivery d force index (delivery_next)
    straight_join postrider_event e on e.event_id = d.event_id
    where d.subscription = ?1 and d.state = 'dead') as open_ones
group by stream
