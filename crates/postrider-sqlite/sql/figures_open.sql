-- What is open of a subscription, by stream. Lock: none. Index: postrider_delivery_due and postrider_delivery_dead (named, as in
-- due.sql), the primary key of the log once a row. Parameters: ?1 subscription, ?2 a time: those
-- recorded before it are counted, too.
select stream, sum(running) as processing, sum(retrying) as retrying, sum(dead) as dead, min(recorded_at) as oldest, sum(attempts) as attempts,
       coalesce(sum(recorded_at < ?2), 0) as earlier,
       sum(waits) as waiting, min(next_at) as next_at
from (
    select e.stream, d.state = 'running' as running, d.state <> 'running' as retrying, 0 as dead, e.recorded_at, d.attempts,
           d.state = 'waiting' as waits, case when d.state = 'retrying' then d.next_at end as next_at
    from postrider_delivery d indexed by postrider_delivery_due cross join postrider_event e on e.id = d.id
    where d.subscription = ?1 and d.state in ('waiting', 'running', 'retrying')
    union all
    select e.stream, 0, 0, 1, null, 0, 0, null
    from postrider_delivery d indexed by postrider_delivery_dead cross join postrider_event e on e.id = d.id
    where d.subscription = ?1 and d.state = 'dead')
group by stream
