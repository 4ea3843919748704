-- Writes what became of the events that did not simply succeed. Lock: the database's write lock.
-- Index: the primary keys. Which steps are possible is the trigger's to say.
-- Parameters: ?1 subscription, ?2 the time, ?3 owner, ?4 a JSON array of changes, ?5 the lease's epoch.
insert into postrider_delivery (subscription, id, event_id, key, lane_hash, state, holds, attempts, next_at,
                                first_failed_at, last_attempt_at, error_code, error_message, past, delivered_at, delivered_by, epoch)
select ?1, e.id, e.event_id, c.value ->> 'key', c.value ->> 'hash', c.value ->> 'state',
       s.order_policy <> 'none' and (c.value ->> 'state' in ('waiting', 'running', 'retrying')
                                     or (c.value ->> 'state' = 'dead' and s.on_dead = 'hold')),
       c.value ->> 'attempts',
       case when c.value ->> 'state' = 'retrying' then ?2 + (c.value ->> 'retry_in') end,
       case when c.value ->> 'state' in ('retrying', 'dead') then ?2 end,
       case when c.value ->> 'state' <> 'waiting' then ?2 end,
       c.value ->> 'code', c.value ->> 'message', c.value ->> 'past',
       case when c.value ->> 'state' = 'delivered' then ?2 end,
       case when c.value ->> 'state' = 'delivered' then ?3 end,
       case when c.value ->> 'state' = 'running' then ?5 end
from json_each(?4) c
cross join postrider_event e on e.id = c.value ->> 'id'
join postrider_subscription s on s.name = ?1
where true
on conflict (subscription, id) do update
set state = excluded.state, holds = excluded.holds, attempts = excluded.attempts, next_at = excluded.next_at,
    first_failed_at = coalesce(first_failed_at, excluded.first_failed_at),
    last_attempt_at = coalesce(excluded.last_attempt_at, last_attempt_at),
    error_code = coalesce(excluded.error_code, error_code),
    error_message = coalesce(excluded.error_message, error_message), past = coalesce(excluded.past, past),
    delivered_at = excluded.delivered_at, delivered_by = excluded.delivered_by, epoch = excluded.epoch
