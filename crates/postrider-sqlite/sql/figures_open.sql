-- What is open of a subscription, by stream. Lock: none. Index: postrider_delivery_due and postrider_delivery_dead (named, as in
-- due.sql), the primary key of the log once a row. A waiting row that has a time in `look_at` is the first of its key (see
-- migration 5); in strict order it is due only if it is the first of its lane, by postrider_delivery_lane.
-- Parameters: ?1 subscription, ?2 a time: those recorded before it are counted, too.
select stream, sum(running) as processing, sum(retrying) as retrying, sum(dead) as dead, min(recorded_at) as oldest, sum(attempts) as attempts,
       coalesce(sum(recorded_at < ?2), 0) as earlier,
       sum(waits) as waiting, min(next_at) as next_at, sum(due) as due
from (
    select e.stream, d.state = 'running' as running, d.state <> 'running' as retrying, 0 as dead, e.recorded_at, d.attempts,
           d.state = 'waiting' as waits, case when d.state = 'retrying' then d.next_at end as next_at,
           case when d.state <> 'waiting' or d.look_at is null then 0
                when (select s.order_policy from postrider_subscription s where s.name = ?1) <> 'strict' then 1
                else d.id = (select k.id from postrider_delivery k indexed by postrider_delivery_lane
                             where k.subscription = ?1 and k.lane = d.lane and k.holds order by k.id limit 1) end as due
    from postrider_delivery d indexed by postrider_delivery_due cross join postrider_event e on e.id = d.id
    where d.subscription = ?1 and d.state in ('waiting', 'running', 'retrying')
    union all
    select e.stream, 0, 0, 1, null, 0, 0, null, 0
    from postrider_delivery d indexed by postrider_delivery_dead cross join postrider_event e on e.id = d.id
    where d.subscription = ?1 and d.state = 'dead')
group by stream
