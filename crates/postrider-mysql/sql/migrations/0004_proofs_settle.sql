-- Moves a lane, under its lease and from where it must stand, and writes what became of the events that did not simply succeed:
-- all of it or nothing, in one call, so that no client can stand still with the lane's lock. Lock: the lane's row, then those of
-- the deliveries; it is changed in place, so it stays flat while somebody holds a transaction open. Index: the primary keys.
-- Which steps of a delivery are possible is the trigger's to say. `changes` is a JSON array, or null; `given_now` is null for the
-- database's own clock.
--
-- The witness is the run that has the last number that was read, by its number and mark; null if nothing was read. Without it, and
-- with a change of an event that this log does not have under that number, nothing is written, and the lane is lost: the batch is
-- of another history. Beyond the witness a lane moves only over numbers that nobody has and nobody will get.
--
-- `one_by_one` makes a change that the tables refuse a dead delivery with the code `unwritable`, also in place of a final one.
create or replace procedure postrider_settle_witnessed(
    in the_subscription varbinary(800), in the_lane int, in the_epoch bigint, in the_owner varbinary(2000), in from_seq bigint,
    in to_seq bigint, in reading_seq bigint, in the_count bigint, in given_now bigint,
    in changes longtext charset utf8mb4 collate utf8mb4_bin, in witness_seq bigint, in witness_mark varbinary(32),
    in one_by_one boolean, in effects longtext charset utf8mb4 collate utf8mb4_bin)
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
        call postrider_stand(the_subscription, the_lane, the_owner, to_seq, now_at, is_recalled, is_open);
        commit;
    else
        rollback;
    end if;
    select is_held as held, is_recalled as recalled, is_open as open;
end;

-- A relay of before proves nothing, and settles nothing any more.
drop procedure if exists postrider_settle;

-- Writes deliveries, for the procedure above: in its transaction. Lock: their rows. Index: the primary keys.
create or replace procedure postrider_deliver(
    in the_subscription varbinary(800), in the_owner varbinary(2000), in now_at bigint,
    in changes longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
    insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts, next_at,
                                    first_failed_at, last_attempt_at, error_code, error_message, delivered_at, delivered_by)
    select the_subscription, c.id, e.event_id, coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)),
           crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))), c.state,
           s.order_policy <> 'none' and (c.state in ('waiting', 'retrying') or (c.state = 'dead' and s.on_dead = 'hold')),
           c.attempts,
           case when c.state = 'retrying' then now_at + c.retry_in end,
           case when c.state in ('retrying', 'dead') then now_at end,
           case when c.state <> 'waiting' then now_at end,
           c.code, c.message,
           case when c.state = 'delivered' then now_at end,
           case when c.state = 'delivered' then the_owner end
    from json_table(changes, '$[*]' columns (
             id bigint path '$.id', event_id varchar(32) path '$.event_id', state varchar(10) path '$.state',
             attempts bigint path '$.attempts', retry_in bigint path '$.retry_in', code text path '$.code',
             message mediumtext path '$.message')) c
    straight_join postrider_run r on r.seq = postrider_run_at(c.id)
    straight_join postrider_event e on e.id = r.id - (r.seq - c.id) and e.event_id = unhex(c.event_id)
    straight_join postrider_subscription s on s.name = the_subscription
    on duplicate key update
        state = values(state), holds = values(holds), attempts = values(attempts), next_at = values(next_at),
        first_failed_at = coalesce(postrider_delivery.first_failed_at, values(first_failed_at)),
        last_attempt_at = coalesce(values(last_attempt_at), postrider_delivery.last_attempt_at),
        error_code = coalesce(values(error_code), postrider_delivery.error_code),
        error_message = coalesce(values(error_message), postrider_delivery.error_message),
        delivered_at = values(delivered_at), delivered_by = values(delivered_by);

-- Writes one delivery as dead, with nothing in it that could be refused, in the place of whatever was there: no step leads there
-- from a final one, so the row is made anew. Lock: its row. Index: the primary keys.
create or replace procedure postrider_bury(
    in the_subscription varbinary(800), in now_at bigint, in the_change longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
begin
    declare the_id bigint default cast(json_extract(the_change, '$.id') as signed);
    delete from postrider_delivery where subscription = the_subscription and id = the_id;
    insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts, first_failed_at,
                                    last_attempt_at, error_code)
    select the_subscription, the_id, e.event_id, coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)),
           crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))), 'dead',
           s.order_policy <> 'none' and s.on_dead = 'hold', cast(json_extract(the_change, '$.attempts') as signed), now_at, now_at, 'unwritable'
    from postrider_run r
    straight_join postrider_event e on e.id = r.id - (r.seq - the_id)
    straight_join postrider_subscription s on s.name = the_subscription
    where r.seq = postrider_run_at(the_id);
end;

-- As before, with names as bytes.
create or replace procedure postrider_stand(
    in the_subscription varbinary(800), in the_lane int,
    in the_owner varbinary(2000), in stands_at bigint, in now_at bigint,
    out is_recalled boolean, out is_open boolean)
    reads sql data
begin
    set is_recalled = true, is_open = false;
    select s.paused or (s.lanes_next is not null and (s.target is null or s.target = stands_at))
               or case when s.wanted_until > now_at and s.wanted_until <= now_at + 11000000 then (
                   select coalesce(max(h.owner = the_owner and h.last_lane = the_lane and h.lanes > s.wanted_with + 1), 0)
                          and sum(h.lanes) = s.lanes
                   from (select l.lease_owner as owner, count(*) as lanes, max(l.lane) as last_lane
                         from postrider_lane l
                         where l.subscription = the_subscription and l.lease_owner is not null and l.lease_until > now_at
                           and l.lease_until <= now_at + l.lease_for + 1000000
                         group by l.lease_owner) h) else 0 end,
           exists (select 1 from postrider_delivery d force index (delivery_open)
                   where d.subscription = the_subscription and d.open = true)
           or exists (select 1 from postrider_delivery d force index (delivery_key)
                      where d.subscription = the_subscription and d.holds = true)
    into is_recalled, is_open
    from postrider_subscription s where s.name = the_subscription;
end;

-- As before, with names as bytes.
create or replace procedure postrider_extend(
    in the_subscription varbinary(800), in the_lane int, in the_epoch bigint,
    in the_owner varbinary(2000), in stands_at bigint, in reading_seq bigint, in prolong_by bigint,
    in given_now bigint)
    modifies sql data
begin
    declare now_at bigint default coalesce(given_now, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)));
    declare is_held, is_recalled, is_open boolean default false;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;
    set transaction isolation level read committed;
    start transaction;
    select true into is_held from postrider_lane
    where subscription = the_subscription and lane = the_lane and lease_epoch = the_epoch and lease_owner = the_owner
      and position = stands_at
    for update;
    if is_held then
        if given_now is null then
            -- The lock may have been waited for.
            set now_at = timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6));
        end if;
        update postrider_lane
        set lease_until = now_at + prolong_by, lease_for = prolong_by, reading = greatest(reading, reading_seq)
        where subscription = the_subscription and lane = the_lane;
    end if;
    commit;
    if is_held then
        call postrider_stand(the_subscription, the_lane, the_owner, stands_at, now_at, is_recalled, is_open);
    end if;
    select is_held as held, is_recalled as recalled, is_open as open, now_at + prolong_by as until;
end;

-- As before; an event id that is none is refused, and not replaced by another.
create or replace procedure postrider_record_with(
    in stream varchar(200) charset utf8mb4, in event_type varchar(200) charset utf8mb4,
    in aggregate_type varchar(200) charset utf8mb4, in aggregate_id varchar(500) charset utf8mb4,
    in payload longtext charset utf8mb4, in headers longtext charset utf8mb4, in event_id varchar(200) charset utf8mb4,
    in occurred_at datetime(6), in ordering_key varchar(500) charset utf8mb4, in sequenced boolean)
    modifies sql data
begin
    if payload is null or not json_valid(payload) then
        signal sqlstate '45000'
            set message_text = 'postrider: the payload is not JSON, or nested too deeply for this server to tell: insert it plainly then';
    end if;
    if event_id is not null
       and not (length(event_id) in (32, 36)
                and event_id regexp '^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$')
    then
        signal sqlstate '45000'
            set message_text = 'postrider: event_id must be a UUID, as uuid() prints it; leave it out to be given one';
    end if;
    insert into postrider_event (stream, event_type, aggregate_type, aggregate_id, payload, headers, event_id, occurred_at,
                                 ordering_key, sequence)
    values (stream, event_type, aggregate_type, aggregate_id, payload, headers, unhex(replace(event_id, '-', '')),
            occurred_at, ordering_key, if(sequenced, 0, null));
end;

-- As before, for people: names are shown as text.
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
