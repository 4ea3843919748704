-- The last tries of a delivery that failed. Publishers never touch this table; relays wait for a moment, and those of before go on without
-- a word of it.

-- A JSON array, the oldest first; null for one that never failed. At most ten, and 32 KiB.
set @postrider_change = (
    select if(count(*) = 0, 'alter table postrider_delivery add column past text', 'do 0')
    from information_schema.columns
    where table_schema = database() and table_name = 'postrider_delivery' and column_name = 'past');

prepare postrider_change from @postrider_change;

execute postrider_change;

deallocate prepare postrider_change;

-- As before, with the tries that a change names; those of relays of before name none.
create or replace procedure postrider_deliver(
    in the_subscription varbinary(800), in the_owner varbinary(2000), in now_at bigint,
    in changes longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
    insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts, next_at,
                                    first_failed_at, last_attempt_at, error_code, error_message, past, delivered_at, delivered_by,
                                    epoch)
    select the_subscription, c.id, e.event_id, coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)),
           crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))), c.state,
           s.order_policy <> 'none' and (c.state in ('waiting', 'running', 'retrying') or (c.state = 'dead' and s.on_dead = 'hold')),
           c.attempts,
           case when c.state = 'retrying' then now_at + c.retry_in end,
           case when c.state in ('retrying', 'dead') then now_at end,
           case when c.state <> 'waiting' then now_at end,
           c.code, c.message, c.past,
           case when c.state = 'delivered' then now_at end,
           case when c.state = 'delivered' then the_owner end,
           case when c.state = 'running' then c.epoch end
    from json_table(changes, '$[*]' columns (
             id bigint path '$.id', event_id varchar(32) path '$.event_id', state varchar(10) path '$.state',
             attempts bigint path '$.attempts', retry_in bigint path '$.retry_in', code text path '$.code',
             message mediumtext path '$.message', past text path '$.past', epoch bigint path '$.epoch')) c
    straight_join postrider_run r on r.seq = postrider_run_at(c.id)
    straight_join postrider_event e on e.id = r.id - (r.seq - c.id) and e.event_id = unhex(c.event_id)
    straight_join postrider_subscription s on s.name = the_subscription
    on duplicate key update
        state = values(state), holds = values(holds), attempts = values(attempts), next_at = values(next_at),
        first_failed_at = coalesce(postrider_delivery.first_failed_at, values(first_failed_at)),
        last_attempt_at = coalesce(values(last_attempt_at), postrider_delivery.last_attempt_at),
        error_code = coalesce(values(error_code), postrider_delivery.error_code),
        error_message = coalesce(values(error_message), postrider_delivery.error_message),
        past = coalesce(values(past), postrider_delivery.past),
        delivered_at = values(delivered_at), delivered_by = values(delivered_by), epoch = values(epoch);
