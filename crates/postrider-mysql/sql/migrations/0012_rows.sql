-- Deliveries are written one row at a time. Relays of before go on, and those that settle meanwhile try again.

-- As before, by a cursor. Some servers (MariaDB 10.11.11, 11.4.5) refuse the second row that is selected into a table with a trigger before
-- updates: "Column 'subscription' cannot be null". Lock: the rows that are written. Index: the primary keys.
create or replace procedure postrider_deliver(
    in the_subscription varbinary(800), in the_owner varbinary(2000), in now_at bigint,
    in changes longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
begin
    declare done boolean default false;
    declare the_id, the_hash, the_attempts, the_pause, the_epoch bigint;
    declare the_event binary(16);
    declare the_key varbinary(2804);
    declare the_state varchar(10) charset utf8mb4 collate utf8mb4_bin;
    declare the_holds boolean;
    declare the_code, the_past text charset utf8mb4 collate utf8mb4_bin;
    declare the_message mediumtext charset utf8mb4 collate utf8mb4_bin;
    declare changed cursor for
        select c.id, e.event_id, coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)),
               crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))), c.state,
               s.order_policy <> 'none'
                   and (c.state in ('waiting', 'running', 'retrying') or (c.state = 'dead' and s.on_dead = 'hold')),
               c.attempts, c.retry_in, c.code, c.message, c.past, c.epoch
        from json_table(changes, '$[*]' columns (
                 id bigint path '$.id', event_id varchar(32) path '$.event_id', state varchar(10) path '$.state',
                 attempts bigint path '$.attempts', retry_in bigint path '$.retry_in', code text path '$.code',
                 message mediumtext path '$.message', past text path '$.past', epoch bigint path '$.epoch')) c
        straight_join postrider_run r on r.seq = postrider_run_at(c.id)
        straight_join postrider_event e on e.id = r.id - (r.seq - c.id) and e.event_id = unhex(c.event_id)
        straight_join postrider_subscription s on s.name = the_subscription;
    declare continue handler for not found set done = true;
    open changed;
    fetch changed into the_id, the_event, the_key, the_hash, the_state, the_holds, the_attempts, the_pause, the_code, the_message,
                       the_past, the_epoch;
    while not done do
        insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts, next_at,
                                        first_failed_at, last_attempt_at, error_code, error_message, past, delivered_at, delivered_by,
                                        epoch)
        values (the_subscription, the_id, the_event, the_key, the_hash, the_state, the_holds, the_attempts,
                case when the_state = 'retrying' then now_at + the_pause end,
                case when the_state in ('retrying', 'dead') then now_at end,
                case when the_state <> 'waiting' then now_at end,
                the_code, the_message, the_past,
                case when the_state = 'delivered' then now_at end,
                case when the_state = 'delivered' then the_owner end,
                case when the_state = 'running' then the_epoch end)
        on duplicate key update
            state = values(state), holds = values(holds), attempts = values(attempts), next_at = values(next_at),
            first_failed_at = coalesce(postrider_delivery.first_failed_at, values(first_failed_at)),
            last_attempt_at = coalesce(values(last_attempt_at), postrider_delivery.last_attempt_at),
            error_code = coalesce(values(error_code), postrider_delivery.error_code),
            error_message = coalesce(values(error_message), postrider_delivery.error_message),
            past = coalesce(values(past), postrider_delivery.past),
            delivered_at = values(delivered_at), delivered_by = values(delivered_by), epoch = values(epoch);
        set done = false;
        fetch changed into the_id, the_event, the_key, the_hash, the_state, the_holds, the_attempts, the_pause, the_code, the_message,
                           the_past, the_epoch;
    end while;
    close changed;
end;
