-- What became of a subscription, counted once at the end. Lock: none. Index: effect_event.
-- An event counts where it arrived first: what came again afterwards can't break its order.
-- Parameters: the subscription, three times.
with arrival as (
    select event_id, min(customer) as customer, min(number) as number, min(n) as n, count(*) as times
    from effect where subscription = ? group by event_id
),
dead as (select event_id from postrider_delivery where subscription = ? and state = 'dead'),
neighbour as (select number <= lag(number) over (partition by customer order by n) as is_late from arrival)
select
    (select count(*) from changed) as recorded,
    (select count(*) from arrival) as delivered,
    (select cast(coalesce(sum(times - 1), 0) as signed) from arrival) as again,
    (select count(distinct event_id) from failed_call
     where subscription = ? and event_id in (select event_id from arrival)) as retried,
    (select count(*) from dead) as dead,
    (select count(*) from changed
     where event_id not in (select event_id from arrival) and event_id not in (select event_id from dead)) as lost,
    (select count(*) from arrival where event_id not in (select event_id from changed)) as invented,
    (select count(*) from neighbour where is_late) as out_of_order
