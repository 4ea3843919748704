-- Writes what became of the events that did not simply succeed. Lock: their rows.
-- Index: the primary keys. Which steps are possible is the trigger's to say.
-- Parameters: ?1 subscription, ?2 the time, ?3 owner, ?4 a JSON array of changes.
insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts, next_at,
                                first_failed_at, last_attempt_at, error_code, error_message, delivered_at, delivered_by)
select ?1, c.id, e.event_id, coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)),
       crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))), c.state,
       s.order_policy <> 'none' and (c.state in ('waiting', 'retrying') or (c.state = 'dead' and s.on_dead = 'hold')),
       c.attempts,
       case when c.state = 'retrying' then ?2 + c.retry_in end,
       case when c.state in ('retrying', 'dead') then ?2 end,
       case when c.state <> 'waiting' then ?2 end,
       c.code, c.message,
       case when c.state = 'delivered' then ?2 end,
       case when c.state = 'delivered' then ?3 end
from json_table(?4, '$[*]' columns (
         id bigint path '$.id', state varchar(10) path '$.state', attempts bigint path '$.attempts',
         retry_in bigint path '$.retry_in', code text path '$.code', message mediumtext path '$.message')) c
straight_join postrider_run r on r.seq = postrider_run_at(c.id)
straight_join postrider_event e on e.id = r.id - (r.seq - c.id)
straight_join postrider_subscription s on s.name = ?1
on duplicate key update
    state = values(state), holds = values(holds), attempts = values(attempts), next_at = values(next_at),
    first_failed_at = coalesce(postrider_delivery.first_failed_at, values(first_failed_at)),
    last_attempt_at = coalesce(values(last_attempt_at), postrider_delivery.last_attempt_at),
    error_code = coalesce(values(error_code), postrider_delivery.error_code),
    error_message = coalesce(values(error_message), postrider_delivery.error_message),
    delivered_at = values(delivered_at), delivered_by = values(delivered_by)
