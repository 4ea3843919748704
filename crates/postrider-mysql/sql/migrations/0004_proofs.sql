-- Proofs: what a relay remembers must be of the history that this server has. Names and keys as bytes. What can't be read is refused
-- where it is recorded. `create or replace` is MariaDB's; for MySQL the migration puts a drop and a create in its place, and locks
-- the table of a trigger meanwhile: at no time is a row written without its trigger.

-- The mark of a run is drawn by the numbering step that wrote it. A server that has the mark has that step, and all before it,
-- because steps happen one after the other and are replicated in their order: so all numbers up to the run's are those that the
-- reader saw. The id of an event would prove less: a transaction that was prepared before a failover and commits after it can get
-- a lower number than an event that both servers have. Runs of before have one mark, that of this migration.
set @postrider_change = (
    select if(count(*) = 0,
              concat('alter table postrider_run add column mark binary(16) not null default 0x',
                     left(sha2(concat(uuid(), rand()), 256), 32)), 'do 0')
    from information_schema.columns
    where table_schema = database() and table_name = 'postrider_run' and column_name = 'mark');

prepare postrider_change from @postrider_change;

execute postrider_change;

deallocate prepare postrider_change;

-- Names and keys are bytes: 'billing' and 'billing ' are two, in every index and every comparison. Text in utf8mb4_bin ignores
-- spaces at the end. The bytes stay as they are. Writers to a table wait while it is copied; publishers write to none of these.
alter table postrider_subscription modify name varbinary(800) not null;

alter table postrider_lane modify subscription varbinary(800) not null,
    modify lease_owner varbinary(2000);

alter table postrider_lane_door modify subscription varbinary(800) not null;

alter table postrider_settled_batch modify subscription varbinary(800) not null,
    modify settled_by varbinary(2000) not null;

alter table postrider_delivery modify subscription varbinary(800) not null,
    modify ordering_key varbinary(2804) not null,
    modify delivered_by varbinary(2000);

alter table postrider_duty modify name varbinary(800) not null,
    modify owner varbinary(800);

alter table postrider_inbox modify consumer varbinary(800) not null;

alter table postrider_forgotten modify consumer varbinary(800) not null;

alter table postrider_audit modify subscription varbinary(800);

-- As before, and refuses what can't be read: a zero date, or a day that the calendar does not have. A session decides by its sql_mode
-- whether it may write them.
create or replace trigger postrider_event_record before insert on postrider_event for each row
begin
    declare chance char(32);
    if new.occurred_at is not null
       and not coalesce(year(new.occurred_at) > 0
                        and dayofmonth(new.occurred_at) between 1 and dayofmonth(last_day(new.occurred_at)), false)
    then
        signal sqlstate '45000'
            set message_text = 'postrider: occurred_at must be a day of the calendar, in UTC; leave it out for the time of recording';
    end if;
    if new.sequence is not null then
        insert into postrider_counter (ordering_key, value)
        values (coalesce(new.ordering_key, concat(new.aggregate_type, ':', new.aggregate_id)), 1)
        on duplicate key update value = value + 1;
        set new.sequence = (
            select value from postrider_counter
            where ordering_key = cast(coalesce(new.ordering_key, concat(new.aggregate_type, ':', new.aggregate_id)) as binary));
    end if;
    insert into postrider_arrival () values ();
    set new.id = last_insert_id();
    set new.recorded_at = utc_timestamp(6);
    if new.event_id is null then
        set chance = left(sha2(concat(uuid(), rand()), 256), 32);
        set new.event_id = unhex(concat(
            lpad(hex(timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) div 1000), 12, '0'),
            '7', substr(chance, 1, 3), substr('89ab', 1 + floor(rand() * 4), 1), substr(chance, 4, 15)));
    end if;
    if new.max_attempts = 0 then
        set new.max_attempts = null;
    end if;
    if new.stream is null then
        set new.stream = 'events';
    end if;
    if new.occurred_at is null then
        set new.occurred_at = new.recorded_at;
    end if;
    if new.headers is null then
        set new.headers = '{}';
    end if;
end;

-- A row that no trigger saw must be refused: it has no place in the log. Left out, max_attempts is 0, which the table's check refuses
-- and the trigger takes for nothing: from here on, where it does. (An id without a default is refused by MariaDB before the trigger can give one, and a check of its
-- own would copy the log.)
alter table postrider_event alter column max_attempts set default 0;

-- As before. Each step has a mark of its own, for witnesses. Numbers go on behind the furthest lane: one that stands beyond the end
-- of the log, as after a restore of some of the tables, would take new events for read.
create or replace procedure postrider_number(in most int, in whole boolean)
    modifies sql data
begin
    declare before_seq, before_reached, taken, top, fresh, low, high bigint default 0;
    declare the_mark binary(16);
    declare hole_first, hole_last, hole_since bigint;
    declare done, needed, holed, astray boolean default false;
    declare late_runs cursor for
        select r.id - r.length + 1, r.id from postrider_run r where r.seq > before_seq and r.late order by r.seq;
    declare continue handler for not found set done = true;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;

    -- Statements of their own: what is selected within an `if` is read with locks, and would wait for publishers.
    if whole then
        select exists (select 1 from postrider_arrival a force index (primary)
                       where a.id <= (select r.reached from postrider_numbering r where r.one = 1)
                         and postrider_run_of(a.id) is null)
        into astray;
    end if;
    select astray
           or exists (select 1 from postrider_arrival a
                      where a.id > (select r.reached from postrider_numbering r where r.one = 1))
           or exists (select 1 from postrider_hole h
                      straight_join postrider_arrival a force index (primary) on a.id between h.first_id and h.last_id)
    into needed;
    if needed then
        set most = least(most, 10000);
        set transaction isolation level read committed;
        start transaction;
        select seq, reached into before_seq, before_reached from postrider_numbering where one = 1 for update;
        select greatest(before_seq, coalesce((select max(l.position) from postrider_lane l), 0),
                        coalesce((select max(r.seq) from postrider_run r), 0))
        into before_seq;
        set the_mark = unhex(left(sha2(concat(uuid(), rand()), 256), 32));
        -- What came is nearly always a single run. That nothing is late is looked at after it: a first event that was seen
        -- missing could have been there when its second was seen.
        select count(*), max(next.id) into fresh, top
        from (select a.id from postrider_arrival a where a.id > before_reached order by a.id limit most) next;
        select astray
               or exists (select 1 from postrider_hole h
                          straight_join postrider_arrival a force index (primary) on a.id between h.first_id and h.last_id)
        into holed;
        if fresh > 0 and fresh = top - before_reached and not holed then
            insert into postrider_run (seq, id, length, late, mark) values (before_seq + fresh, top, fresh, false, the_mark);
        else
            insert into postrider_run (seq, id, length, late, mark)
            select before_seq + sum(island.length) over (order by island.id), island.id, island.length,
                   island.id <= before_reached, the_mark
            from (select max(placed.id) as id, count(*) as length
                  from (select arrived.id, arrived.id - row_number() over (order by arrived.id) as place
                        from (select found.id
                              from (select late.id
                                    from (select a.id from postrider_hole h
                                          straight_join postrider_arrival a force index (primary)
                                              on a.id between h.first_id and h.last_id
                                          order by a.id limit most) late
                                    union
                                    select stray.id
                                    from (select a.id from postrider_arrival a force index (primary)
                                          where astray and a.id <= before_reached and postrider_run_of(a.id) is null
                                          order by a.id limit most) stray
                                    union
                                    select next.id
                                    from (select a.id from postrider_arrival a
                                          where a.id > before_reached order by a.id limit most) next) found
                              order by found.id limit most) arrived) placed
                  group by placed.place) island;
        end if;
        select coalesce(sum(r.length), 0), coalesce(max(r.id), 0), coalesce(sum(if(r.late, 0, r.length)), 0) into taken, top, fresh
        from postrider_run r where r.seq > before_seq;

        if taken > 0 then
            if top - before_reached > fresh then
                insert into postrider_hole (first_id, last_id, since)
                select gap.previous + 1, gap.id - gap.length, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))
                from (select r.id, r.length, coalesce(lag(r.id) over (order by r.id), before_reached) as previous
                      from postrider_run r where r.seq > before_seq and not r.late) gap
                where gap.id - gap.length > gap.previous;
            end if;

            if fresh < taken then
                open late_runs;
                set done = false;
                fetch late_runs into low, high;
                while not done do
                    set hole_first = null;
                    select h.first_id, h.last_id, h.since into hole_first, hole_last, hole_since
                    from postrider_hole h where h.first_id <= low order by h.first_id desc limit 1;
                    if hole_first is not null and hole_last >= high then
                        delete from postrider_hole where first_id = hole_first;
                        if hole_first < low then
                            insert into postrider_hole (first_id, last_id, since) values (hole_first, low - 1, hole_since);
                        end if;
                        if high < hole_last then
                            insert into postrider_hole (first_id, last_id, since) values (high + 1, hole_last, hole_since);
                        end if;
                    end if;
                    set done = false;
                    fetch late_runs into low, high;
                end while;
                close late_runs;
            end if;

            update postrider_numbering set seq = before_seq + taken, reached = greatest(before_reached, top) where one = 1;
        end if;
        commit;
    end if;
    select taken as taken, r.seq, b.rings
    from postrider_numbering r join postrider_bell b on b.one = r.one where r.one = 1;
end;

