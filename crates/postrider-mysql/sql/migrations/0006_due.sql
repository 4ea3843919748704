-- What is due is found by an index, whatever else is open. Publishers never touch this table; relays wait while it is copied and its
-- open rows are placed.

-- `lane` is the one that the row's key is in; a change of lanes places rows anew. `look_at` is when a look is to find the row: of each
-- key its first open row alone has one, what waits behind it is found with it. Without order each row has one. A dead row has none.
set @postrider_change = (
    select if(count(*) = 0,
              'alter table postrider_delivery add column lane int, add column look_at bigint,
                   add key delivery_look (subscription, lane, look_at, id), add key delivery_lane (subscription, lane, holds, id)', 'do 0')
    from information_schema.columns
    where table_schema = database() and table_name = 'postrider_delivery' and column_name = 'look_at');

prepare postrider_change from @postrider_change;

execute postrider_change;

deallocate prepare postrider_change;

-- Places a row. A row that has one of its key before it is found with that one. Everybody who writes rows of a lane has locked the
-- lane's row before: what is read here is what there is.
create or replace trigger postrider_delivery_place before insert on postrider_delivery for each row
begin
    declare the_lanes, first_id bigint;
    if new.lane is null then
        select (select s.lanes from postrider_subscription s where s.name = new.subscription) into the_lanes;
        set new.lane = new.lane_hash % the_lanes;
    end if;
    set new.look_at = case new.state when 'retrying' then new.next_at when 'waiting' then 0 when 'running' then 0 end;
    if new.holds and new.look_at is not null then
        select (select f.id from postrider_delivery f force index (delivery_key)
                where f.subscription = new.subscription and f.holds = true and f.lane_hash = new.lane_hash
                  and f.ordering_key = new.ordering_key
                order by f.id limit 1)
        into first_id;
        if first_id < new.id then
            set new.look_at = null;
        end if;
    end if;
end;

create or replace trigger postrider_delivery_place_again before update on postrider_delivery for each row
begin
    declare first_id bigint;
    set new.look_at = case new.state when 'retrying' then new.next_at when 'waiting' then 0 when 'running' then 0 end;
    if new.holds and new.look_at is not null then
        select (select f.id from postrider_delivery f force index (delivery_key)
                where f.subscription = new.subscription and f.holds = true and f.lane_hash = new.lane_hash
                  and f.ordering_key = new.ordering_key
                order by f.id limit 1)
        into first_id;
        if first_id < new.id then
            set new.look_at = null;
        end if;
    end if;
end;

-- Lets the next one of a key be found where these do not hold theirs any more. `gone` is a JSON array of numbers. Lock: the rows that
-- change. Index: the primary key, delivery_key, once a key: the rows that this transaction took from it are still in the way. The trigger
-- says when each is found.
create or replace procedure postrider_let_go(in the_subscription varbinary(800), in gone longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
    update (select (select f.id from postrider_delivery f force index (delivery_key)
                    where f.subscription = the_subscription and f.holds = true and f.lane_hash = k.lane_hash
                      and f.ordering_key = k.ordering_key
                    order by f.id limit 1) as id
            from (select distinct g.lane_hash, g.ordering_key
                  from json_table(gone, '$[*]' columns (id bigint path '$.id')) c
                  straight_join postrider_delivery g on g.subscription = the_subscription and g.id = c.id and g.holds = false) as k) as next
    straight_join postrider_delivery d on d.subscription = the_subscription and d.id = next.id
    set d.look_at = 0
    where d.look_at is null and d.state <> 'dead';

-- As before, and lets those be found that were behind what is settled.
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

-- Places what is open, and may run twice. A settle that began before all of the above lets nothing be found: one that has its lane is
-- waited for, and one that waits for it has lost its lease then. A relay of before claims its lanes anew.
start transaction;

update postrider_lane set lease_epoch = lease_epoch + 1, lease_owner = null, lease_until = null, lease_for = null, reading = 0;

update postrider_delivery d straight_join postrider_subscription s on s.name = d.subscription
set d.lane = d.lane_hash % s.lanes
where d.holds or d.state in ('waiting', 'running', 'retrying', 'dead');

commit;
