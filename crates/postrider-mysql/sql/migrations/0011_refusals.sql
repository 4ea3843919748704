-- What a settle takes for the refusal of one delivery. Relays of before go on, and those that settle meanwhile try again.

-- As before. One by one, a delivery is dead only if the tables object to its row: its values, a rule or a limit. A procedure or a table that
-- is missing while somebody migrates, a lock, a connection that was ended, a full disk say nothing of the event: all of it is
-- to be settled again then.
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
                -- By name, because servers differ in where they put an error among warnings and notes: values, constraints and what triggers
                -- refuse; the numbers are of the same kind, and have no such state.
                declare exit handler for
                    sqlstate '22001', sqlstate '22002', sqlstate '22003', sqlstate '22004', sqlstate '22007', sqlstate '22008', sqlstate '22012',
                    sqlstate '22018', sqlstate '22032', sqlstate '22035', sqlstate '23000', sqlstate '45000',
                    1118, 1265, 1300, 1301, 1364, 1366, 1411, 1713, 3819, 4025, 4036, 4037, 4038
                begin
                    rollback to savepoint postrider_change;
                    call postrider_bury(the_subscription, now_at, json_extract(changes, concat('$[', at_change, ']')));
                end;
                call postrider_deliver(the_subscription, the_owner, now_at,
                                       concat('[', json_extract(changes, concat('$[', at_change, ']')), ']'));
            end;
            set at_change = at_change + 1;
        end while;
        if succeeded is not null then
            update json_table(succeeded, '$[*]' columns (id bigint path '$.id', event_id varchar(32) path '$.event_id')) c
            straight_join postrider_delivery d
                on d.subscription = the_subscription and d.id = c.id and d.event_id = unhex(c.event_id)
            set d.holds = false
            where d.state = 'running' and d.epoch = the_epoch;
            call postrider_let_go(the_subscription, succeeded);
            delete d
            from json_table(succeeded, '$[*]' columns (id bigint path '$.id', event_id varchar(32) path '$.event_id')) c
            straight_join postrider_delivery d
                on d.subscription = the_subscription and d.id = c.id and d.event_id = unhex(c.event_id)
            where d.state = 'running' and d.epoch = the_epoch;
        end if;
        if many > 0 then
            call postrider_let_go(the_subscription, changes);
        end if;
        call postrider_stand(the_subscription, the_lane, the_owner, to_seq, now_at, is_recalled, is_open);
        commit;
    else
        rollback;
    end if;
    select is_held as held, is_recalled as recalled, is_open as open;
end;
