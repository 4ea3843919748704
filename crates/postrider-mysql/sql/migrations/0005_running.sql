-- Deliveries that are running: begun, and not finished when their batch was settled. Publishers never touch this table; relays wait
-- while it is copied.

-- For a running one: the epoch of the lease it was begun under. Under that epoch it is in hand; under another its holder is gone.
set @postrider_change = (
    select if(count(*) = 0, 'alter table postrider_delivery add column epoch bigint', 'do 0')
    from information_schema.columns
    where table_schema = database() and table_name = 'postrider_delivery' and column_name = 'epoch');

prepare postrider_change from @postrider_change;

execute postrider_change;

deallocate prepare postrider_change;

-- A running one holds its key and is open.
alter table postrider_delivery
    modify open boolean generated always as (state in ('waiting', 'running', 'retrying')) stored,
    drop constraint delivery_state_known,
    add constraint delivery_state_known check (state in ('waiting', 'running', 'retrying', 'dead', 'delivered', 'discarded'));

-- waiting -> running | retrying -> delivered | dead; running -> waiting, when it was cut short; dead -> retrying | discarded. No
-- other step, whoever takes it.
create or replace trigger postrider_delivery_step after update on postrider_delivery for each row
begin
    if not ((old.state in ('waiting', 'running') and new.state <> 'discarded')
            or (old.state = 'retrying' and new.state in ('running', 'retrying', 'delivered', 'dead'))
            or (old.state = 'dead' and new.state in ('dead', 'retrying', 'discarded')))
    then
        signal sqlstate '45000'
            set message_text = 'postrider: a delivery is waiting, then running or retrying, then delivered or dead; only a dead one is requeued';
    end if;
end;

-- As before; a running one gets the epoch that its change names.
create or replace procedure postrider_deliver(
    in the_subscription varbinary(800), in the_owner varbinary(2000), in now_at bigint,
    in changes longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
    insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts, next_at,
                                    first_failed_at, last_attempt_at, error_code, error_message, delivered_at, delivered_by, epoch)
    select the_subscription, c.id, e.event_id, coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)),
           crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))), c.state,
           s.order_policy <> 'none' and (c.state in ('waiting', 'running', 'retrying') or (c.state = 'dead' and s.on_dead = 'hold')),
           c.attempts,
           case when c.state = 'retrying' then now_at + c.retry_in end,
           case when c.state in ('retrying', 'dead') then now_at end,
           case when c.state <> 'waiting' then now_at end,
           c.code, c.message,
           case when c.state = 'delivered' then now_at end,
           case when c.state = 'delivered' then the_owner end,
           case when c.state = 'running' then c.epoch end
    from json_table(changes, '$[*]' columns (
             id bigint path '$.id', event_id varchar(32) path '$.event_id', state varchar(10) path '$.state',
             attempts bigint path '$.attempts', retry_in bigint path '$.retry_in', code text path '$.code',
             message mediumtext path '$.message', epoch bigint path '$.epoch')) c
    straight_join postrider_run r on r.seq = postrider_run_at(c.id)
    straight_join postrider_event e on e.id = r.id - (r.seq - c.id) and e.event_id = unhex(c.event_id)
    straight_join postrider_subscription s on s.name = the_subscription
    on duplicate key update
        state = values(state), holds = values(holds), attempts = values(attempts), next_at = values(next_at),
        first_failed_at = coalesce(postrider_delivery.first_failed_at, values(first_failed_at)),
        last_attempt_at = coalesce(values(last_attempt_at), postrider_delivery.last_attempt_at),
        error_code = coalesce(values(error_code), postrider_delivery.error_code),
        error_message = coalesce(values(error_message), postrider_delivery.error_message),
        delivered_at = values(delivered_at), delivered_by = values(delivered_by), epoch = values(epoch);

-- As before, and forgets the running ones that simply succeeded: `succeeded` is a JSON array of numbers and event ids, or null. Only
-- what is running under this very lease goes.
create or replace procedure postrider_settle_running(
    in the_subscription varbinary(800), in the_lane int, in the_epoch bigint, in the_owner varbinary(2000), in from_seq bigint,
    in to_seq bigint, in reading_seq bigint, in the_count bigint, in given_now bigint,
    in changes longtext charset utf8mb4 collate utf8mb4_bin, in witness_seq bigint, in witness_mark varbinary(32),
    in one_by_one boolean, in effects longtext charset utf8mb4 collate utf8mb4_bin,
    in succeeded longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
begin
    declare now_at bigint default coalesce(given_now, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)));
    declare is_held, is_proved, is_recalled, is_open boolean default false;
    declare many, known, at_change, last_seq bigint default 0;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;
    set many = coalesce(json_length(changes), 0);
    set transaction isolation level read committed;
    start transaction;
    select true into is_held from postrider_lane
    where subscription = the_subscription and lane = the_lane and lease_epoch = the_epoch and lease_owner = the_owner
      and position = from_seq
    for update;
    if is_held and witness_seq is not null then
        select exists (select 1 from postrider_run r where r.seq = witness_seq and r.mark = unhex(witness_mark)) into is_held;
    end if;
    if is_held and to_seq > greatest(from_seq, coalesce(witness_seq, 0)) then
        -- The common position of a change of lanes, where retention or a restore left no run to stand for it.
        select seq into last_seq from postrider_numbering where one = 1 for update;
        select not exists (select 1 from postrider_run r
                           where r.seq > greatest(from_seq, coalesce(witness_seq, 0)) and r.seq - r.length < to_seq)
        into is_held;
        if is_held and last_seq < to_seq then
            update postrider_numbering set seq = to_seq where one = 1;
        end if;
    end if;
    if is_held and many > 0 then
        select count(*) into known
        from json_table(changes, '$[*]' columns (id bigint path '$.id', event_id varchar(32) path '$.event_id')) c
        straight_join postrider_run r on r.seq = postrider_run_at(c.id)
        straight_join postrider_event e on e.id = r.id - (r.seq - c.id) and e.event_id = unhex(c.event_id);
        set is_held = known = many;
    end if;
    if is_held and effects is not null then
        -- An event may be here while its effect is gone with the old server: its mark in the inbox must be here, too.
        select count(*) into known
        from json_table(effects, '$[*]' columns (event_id varchar(32) path '$')) c
        straight_join postrider_inbox i on i.consumer = the_subscription and i.event_id = unhex(c.event_id);
        set is_held = known = json_length(effects);
    end if;
    if is_held then
        update postrider_lane
        set position = to_seq, reading = greatest(to_seq, reading_seq), claims_since_settle = 1, settled_at = now_at
        where subscription = the_subscription and lane = the_lane;
        if from_seq <> to_seq then
            insert into postrider_settled_batch (subscription, lane, lanes, first_id, last_id, count, settled_at, settled_by)
            select the_subscription, the_lane, s.lanes, from_seq + 1, to_seq, the_count, now_at, the_owner
            from postrider_subscription s where s.name = the_subscription;
        end if;
        if many > 0 and not one_by_one then
            call postrider_deliver(the_subscription, the_owner, now_at, changes);
        end if;
        while one_by_one and at_change < many do
            savepoint postrider_change;
            begin
                declare errno int;
                declare exit handler for sqlexception
                begin
                    get diagnostics condition 1 errno = mysql_errno;
                    -- A deadlock or a lock that was waited for too long says nothing of the delivery.
                    if errno in (1205, 1213) then
                        resignal;
                    end if;
                    rollback to savepoint postrider_change;
                    call postrider_bury(the_subscription, now_at, json_extract(changes, concat('$[', at_change, ']')));
                end;
                call postrider_deliver(the_subscription, the_owner, now_at,
                                       concat('[', json_extract(changes, concat('$[', at_change, ']')), ']'));
            end;
            set at_change = at_change + 1;
        end while;
        if succeeded is not null then
            delete d
            from json_table(succeeded, '$[*]' columns (id bigint path '$.id', event_id varchar(32) path '$.event_id')) c
            straight_join postrider_delivery d
                on d.subscription = the_subscription and d.id = c.id and d.event_id = unhex(c.event_id)
            where d.state = 'running' and d.epoch = the_epoch;
        end if;
        call postrider_stand(the_subscription, the_lane, the_owner, to_seq, now_at, is_recalled, is_open);
        commit;
    else
        rollback;
    end if;
    select is_held as held, is_recalled as recalled, is_open as open;
end;

-- For relays of before.
create or replace procedure postrider_settle_witnessed(
    in the_subscription varbinary(800), in the_lane int, in the_epoch bigint, in the_owner varbinary(2000), in from_seq bigint,
    in to_seq bigint, in reading_seq bigint, in the_count bigint, in given_now bigint,
    in changes longtext charset utf8mb4 collate utf8mb4_bin, in witness_seq bigint, in witness_mark varbinary(32),
    in one_by_one boolean, in effects longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
    call postrider_settle_running(the_subscription, the_lane, the_epoch, the_owner, from_seq, to_seq, reading_seq, the_count, given_now,
                                  changes, witness_seq, witness_mark, one_by_one, effects, null);

-- As before: what is running is being processed.
create or replace view postrider_event_standing as
select n.seq - (n.id - e.id) as id, e.id as log_id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id,
       coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)) as ordering_key, e.sequence,
       s.name as subscription, l.lane,
       case
           when d.state = 'running' then 'processing'
           when d.state in ('waiting', 'retrying') then 'retrying'
           when d.state in ('dead', 'discarded') then d.state
           when d.state = 'delivered' or n.seq - (n.id - e.id) <= l.position then 'done'
       end as settled_state,
       coalesce(d.attempts, n.seq - (n.id - e.id) <= l.position, 0) as attempts,
       coalesce(e.max_attempts, 0) as max_attempts,
       case when d.state = 'retrying' then d.next_at end as next_retry_at,
       coalesce(d.last_attempt_at, b.settled_at) as last_attempt_at,
       case when d.state is not null then d.delivered_at else b.settled_at end as delivered_at,
       case when d.state is not null then d.delivered_by else b.settled_by end as delivered_by,
       l.reading, l.lease_owner, l.lease_until, l.lease_for,
       d.error_code, d.error_message,
       e.occurred_at, e.recorded_at, e.headers, e.payload, e.content_type, e.content
from postrider_event e
left join postrider_run n on n.id = postrider_run_of(e.id)
join postrider_subscription s
    on (s.since is null or e.recorded_at >= '1970-01-01 00:00:00' + interval s.since microsecond)
   and (n.seq is null or n.seq - (n.id - e.id) > s.start_frontier)
   and (s.streams_regexp is null or e.stream regexp s.streams_regexp)
   and (s.types_regexp is null or e.event_type regexp s.types_regexp)
join postrider_lane l
    on l.subscription = s.name
   and l.lane = crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))) % s.lanes
left join postrider_delivery d on d.subscription = s.name and d.id = n.seq - (n.id - e.id)
left join postrider_settled_batch b on b.id = (
    select h.id from postrider_settled_batch h
    where h.subscription = s.name and h.last_id >= n.seq - (n.id - e.id) and h.first_id <= n.seq - (n.id - e.id)
      and n.seq - (n.id - e.id) <= l.position
      and h.lane = crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))) % h.lanes
    order by h.last_id limit 1);

-- As before: it is made after the view that it looks at, also where both are missing.
create or replace view postrider_event_state as
select v.id, v.event_id, v.stream, v.event_type, v.aggregate_type, v.aggregate_id, v.ordering_key, v.sequence,
       convert(v.subscription using utf8mb4) as subscription, v.lane,
       coalesce(v.settled_state,
                case when v.lease_owner is not null and v.id <= v.reading
                          and v.lease_until > timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))
                          and v.lease_until <= timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) + v.lease_for + 1000000
                     then 'processing' else 'pending' end) as state,
       v.attempts, v.max_attempts,
       '1970-01-01 00:00:00' + interval v.next_retry_at microsecond as next_retry_at,
       '1970-01-01 00:00:00' + interval v.last_attempt_at microsecond as last_attempt_at,
       '1970-01-01 00:00:00' + interval v.delivered_at microsecond as delivered_at, convert(v.delivered_by using utf8mb4) as delivered_by,
       case when v.lease_until > timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))
                 and v.lease_until <= timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) + v.lease_for + 1000000
            then convert(v.lease_owner using utf8mb4) end as lease_owner,
       v.error_code, v.error_message, v.occurred_at, v.recorded_at, v.headers, v.payload, v.content_type, v.content
from postrider_event_standing v;
