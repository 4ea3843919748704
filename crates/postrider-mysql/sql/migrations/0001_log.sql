-- The log: events, the order in which they became visible, the counters of sequenced keys, the archive.
-- Nothing here is MariaDB's or MySQL's alone. DDL commits by itself in both, so every statement may run twice.
--
-- Ids are 16 bytes (binary(16): half of what char(36) takes in every index), names compare byte by byte
-- (utf8mb4_bin), payloads are text and not JSON, which MySQL would print anew. Times of events are datetime(6) in
-- UTC, whatever the zone of the session; all others are microseconds since 1970, so that no session's zone and no
-- change of clocks is ever in the arithmetic.

-- What was recorded: filled by the trigger of postrider_event, in the publisher's transaction. Its counter gives events their
-- ids. An id is taken just before its row is written, so the second event of a key has a higher one than the first, which had
-- committed by then. What has its number is cleared away afterwards.
create table if not exists postrider_arrival (
    id bigint not null auto_increment primary key
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- Whether a payload is JSON is checked by the libraries and the procedures below: json_valid() takes no more than 32 levels in
-- MariaDB and 100 in MySQL.
create table if not exists postrider_event (
    id             bigint not null default 0 primary key,
    event_id       binary(16),
    stream         varchar(200),
    event_type     varchar(200) not null,
    aggregate_type varchar(200) not null,
    aggregate_id   varchar(500) not null,
    ordering_key   varchar(500),
    sequence       bigint,
    max_attempts   int,
    occurred_at    datetime(6),
    recorded_at    datetime(6),
    headers        longtext,
    payload        longtext,
    content_type   varchar(200),
    content        longblob,
    unique key event_id_is_unique (event_id),
    constraint event_stream_length check (length(stream) between 1 and 200),
    constraint event_type_length check (length(event_type) between 1 and 200),
    constraint event_aggregate_type_length check (length(aggregate_type) between 1 and 200),
    constraint event_aggregate_id_length check (length(aggregate_id) between 1 and 500),
    constraint event_ordering_key_length check (length(ordering_key) between 1 and 500),
    constraint event_max_attempts_positive check (max_attempts > 0),
    constraint event_headers_are_an_object check (json_valid(headers) and json_type(headers) = 'OBJECT'),
    constraint event_has_json_or_content check (
        (payload is not null and content_type is null and content is null)
        or (payload is null and content_type is not null and content is not null))
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- The order of the log: events that are committed, in the order in which that was seen. A run is of events whose ids follow each
-- other and whose numbers do: one row for thousands of events where nobody rolled back. `seq` and `id` are the number and the id
-- of its last event. `late` is a run whose ids are below another that had its number before. Readers follow the numbers, which
-- have no gaps but those of retention. No run is longer than 10,000, so the runs of a range of numbers are found by `seq`.
create table if not exists postrider_run (
    seq    bigint not null primary key,
    id     bigint not null,
    length bigint not null,
    late   boolean not null,
    unique key run_ids (id)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- One row, locked by whoever gives numbers: the last number, and the highest id that has one.
create table if not exists postrider_numbering (
    one     tinyint not null primary key,
    seq     bigint not null,
    reached bigint not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

insert ignore into postrider_numbering (one, seq, reached) values (1, 0, 0);

-- One row, locked by whoever clears arrivals away: up to which number that is done.
create table if not exists postrider_clearing (
    one tinyint not null primary key,
    seq bigint not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

insert ignore into postrider_clearing (one, seq) values (1, 0);

-- Ids up to `reached` that were not there: of transactions that are open, or were rolled back.
create table if not exists postrider_hole (
    first_id bigint not null primary key,
    last_id  bigint not null,
    since    bigint not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- The last number handed out per ordering key, for events that asked for one. Bytes: 'a' and 'a ' are two keys.
create table if not exists postrider_counter (
    ordering_key varbinary(2804) not null primary key,
    value        bigint not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- An event id may have been used again after its first event was archived: not unique here.
create table if not exists postrider_archive (
    id             bigint not null primary key,
    event_id       binary(16) not null,
    stream         varchar(200) not null,
    event_type     varchar(200) not null,
    aggregate_type varchar(200) not null,
    aggregate_id   varchar(500) not null,
    ordering_key   varchar(500),
    sequence       bigint,
    max_attempts   int,
    occurred_at    datetime(6) not null,
    recorded_at    datetime(6) not null,
    headers        longtext not null,
    payload        longtext,
    content_type   varchar(200),
    content        longblob,
    archived_at    datetime(6) not null,
    key archive_event (event_id),
    key archive_recorded (recorded_at)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

drop trigger if exists postrider_event_record;

-- What must be set is set here, whatever the caller wrote: plain inserts are right as well. The number of a key comes
-- first, because its row is the lock that keeps two transactions in order; the id after it. The event id is a UUIDv7:
-- 48 bits of milliseconds, then a hash of the server's own unique id and chance (MariaDB before 10.10 has no
-- random_bytes, MySQL 9.7 no md5).
create trigger postrider_event_record before insert on postrider_event for each row
begin
    declare chance char(32);
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

drop trigger if exists postrider_event_refuse_update;

-- After, not before: some servers (MariaDB 11.4.5) refuse an insert of several selected rows into a table that has a
-- trigger before updates.
create trigger postrider_event_refuse_update after update on postrider_event for each row
    signal sqlstate '45000' set message_text = 'postrider: events can''t be changed: record another event that corrects it';

drop trigger if exists postrider_event_refuse_delete;

create trigger postrider_event_refuse_delete before delete on postrider_event for each row
begin
    if @postrider_sweeping is null then
        signal sqlstate '45000'
            set message_text = 'postrider: events can''t be changed: delete is refused, only retention takes them (sweep)';
    end if;
end;

-- Counts what relays have to look at although no event came: a pause, a replay, a change of lanes.
create table if not exists postrider_bell (
    one   tinyint not null primary key,
    rings bigint not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

insert ignore into postrider_bell (one, rings) values (1, 0);

drop function if exists postrider_run_of;

-- The run that an event is in, by its id; null while it has no number. Functions, because a server finds the first row at or
-- after a value of another table by walking all of them, and after a variable at once.
create function postrider_run_of(event bigint) returns bigint
    deterministic reads sql data
begin
    declare found, beginning bigint;
    select r.id, r.id - r.length + 1 into found, beginning from postrider_run r where r.id >= event order by r.id limit 1;
    return if(event >= beginning, found, null);
end;

drop function if exists postrider_run_at;

-- The first run that has this number or a later one, by its last number.
create function postrider_run_at(number bigint) returns bigint
    deterministic reads sql data
begin
    declare found bigint;
    select min(r.seq) into found from postrider_run r where r.seq >= number;
    return found;
end;

drop procedure if exists postrider_number;

-- Gives numbers to what was committed, to `most` events at most; says to how many, and what sleeping relays look for.
--
-- It waits for no publisher: arrivals are read without locks, as one snapshot shows them. A snapshot that shows the
-- second event of a key shows the first, and the lower ids are taken first, so a key keeps its order. Only one gives
-- numbers at a time, by the lock on the one row; all of it is one call, so that no client can stand still with that lock.
--
-- It does not look through all arrivals, because they are cleared away later, and rows that were deleted stay in the way for as
-- long as somebody holds an old transaction open: it looks above the highest id so far, and into the holes below it. `whole`
-- looks everywhere, for what came into a hole that was forgotten.
create procedure postrider_number(in most int, in whole boolean)
    modifies sql data
begin
    declare before_seq, before_reached, taken, top, fresh, low, high bigint default 0;
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
        -- What came is nearly always a single run. That nothing is late is looked at after it: a first event that was seen
        -- missing could have been there when its second was seen.
        select count(*), max(next.id) into fresh, top
        from (select a.id from postrider_arrival a where a.id > before_reached order by a.id limit most) next;
        select astray
               or exists (select 1 from postrider_hole h
                          straight_join postrider_arrival a force index (primary) on a.id between h.first_id and h.last_id)
        into holed;
        if fresh > 0 and fresh = top - before_reached and not holed then
            insert into postrider_run (seq, id, length, late) values (before_seq + fresh, top, fresh, false);
        else
            insert into postrider_run (seq, id, length, late)
            select before_seq + sum(island.length) over (order by island.id), island.id, island.length,
                   island.id <= before_reached
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

drop procedure if exists postrider_clear;

-- Clears arrivals away that have their numbers, some 10,000 of them, unless somebody else does; says up to which number that is
-- done. A delete by a range locks the row behind it, and would wait for a publisher who has just written that one: so the last row
-- of a run is left out of the range, and is the row behind it. The index is forced: a scan of the whole table would lock it all.
create procedure postrider_clear()
    modifies sql data
begin
    declare before_seq, upto, last_id, many bigint;
    declare done boolean default false;
    declare cleared_runs cursor for
        select r.id, r.length from postrider_run r where r.seq > before_seq and r.seq <= upto order by r.seq;
    declare continue handler for not found set done = true;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;
    set transaction isolation level read committed;
    start transaction;
    select seq into before_seq from postrider_clearing where one = 1 for update skip locked;
    if before_seq is not null then
        select coalesce((select max(r.seq) from postrider_run r where r.seq > before_seq and r.seq <= before_seq + 10000),
                        (select min(r.seq) from postrider_run r where r.seq > before_seq))
        into upto;
        if upto is not null then
            open cleared_runs;
            set done = false;
            fetch cleared_runs into last_id, many;
            while not done do
                delete a from postrider_clearing c
                straight_join postrider_arrival a force index (primary) on a.id between last_id - many + 1 and last_id - 1
                where c.one = 1;
                delete from postrider_arrival where id = last_id;
                set done = false;
                fetch cleared_runs into last_id, many;
            end while;
            close cleared_runs;
            update postrider_clearing set seq = upto where one = 1;
        end if;
    end if;
    commit;
    select coalesce(upto, before_seq) as cleared;
end;

drop procedure if exists postrider_record_with;

-- For publishers in any language, in the transaction that changes their data, with everything that an event may have; what is
-- null is left out. An event id is text as uuid() prints it.
create procedure postrider_record_with(
    in stream varchar(200) charset utf8mb4, in event_type varchar(200) charset utf8mb4,
    in aggregate_type varchar(200) charset utf8mb4, in aggregate_id varchar(500) charset utf8mb4,
    in payload longtext charset utf8mb4, in headers longtext charset utf8mb4, in event_id char(36) charset utf8mb4,
    in occurred_at datetime(6), in ordering_key varchar(500) charset utf8mb4, in sequenced boolean)
    modifies sql data
begin
    if payload is null or not json_valid(payload) then
        signal sqlstate '45000'
            set message_text = 'postrider: the payload is not JSON, or nested too deeply for this server to tell: insert it plainly then';
    end if;
    insert into postrider_event (stream, event_type, aggregate_type, aggregate_id, payload, headers, event_id, occurred_at,
                                 ordering_key, sequence)
    values (stream, event_type, aggregate_type, aggregate_id, payload, headers, unhex(replace(event_id, '-', '')),
            occurred_at, ordering_key, if(sequenced, 0, null));
end;

drop procedure if exists postrider_record;

-- The same with what every event has.
create procedure postrider_record(
    in stream varchar(200) charset utf8mb4, in event_type varchar(200) charset utf8mb4,
    in aggregate_type varchar(200) charset utf8mb4, in aggregate_id varchar(500) charset utf8mb4,
    in payload longtext charset utf8mb4)
    modifies sql data
    call postrider_record_with(stream, event_type, aggregate_type, aggregate_id, payload, null, null, null, null, null);
