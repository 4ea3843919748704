-- The log: events, the order in which they became visible, the counters of sequenced keys, the archive.
-- Nothing here is MariaDB's or MySQL's alone. DDL commits by itself in both, so every statement may run twice.
--
-- Ids are 16 bytes (binary(16): half of what char(36) takes in every index), names compare byte by byte
-- (utf8mb4_bin), payloads are text and not JSON, which MySQL would print anew. Times of events are datetime(6) in
-- UTC, whatever the zone of the session; all others are microseconds since 1970, so that no session's zone and no
-- change of clocks is ever in the arithmetic.

-- What was recorded and has no number yet: filled by the trigger of postrider_event, in the publisher's transaction.
-- Its counter gives events their ids. An id is taken just before its row is written, so the second event of a key has
-- a higher one than the first, which had committed by then.
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

-- The order of the log: events that are committed, in the order in which that was seen. `late` is one whose id was
-- below another that had its number before. Readers follow `seq`, which has no holes but those of retention.
create table if not exists postrider_numbered (
    seq  bigint not null primary key,
    id   bigint not null,
    late boolean not null,
    unique key numbered_event (id)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- One row, locked by whoever gives numbers: the last number, and the highest id that has one.
create table if not exists postrider_numbering (
    one     tinyint not null primary key,
    seq     bigint not null,
    reached bigint not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

insert ignore into postrider_numbering (one, seq, reached) values (1, 0, 0);

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
-- random_bytes).
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
        set chance = md5(concat(uuid(), rand()));
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

drop procedure if exists postrider_number;

-- Gives numbers to what was committed, to `most` events at most; says to how many, and what sleeping relays look for.
--
-- It waits for no publisher: arrivals are read without locks, as one snapshot shows them. A snapshot that shows the
-- second event of a key shows the first, and the lower ids are taken first, so a key keeps its order. Only one gives
-- numbers at a time, by the lock on the one row; all of it is one call, so that no client can stand still with that lock.
--
-- It does not look through all arrivals, because rows that were deleted stay in the way for as long as somebody holds an
-- old transaction open: it looks above the highest id so far, and into the holes below it. `whole` looks everywhere.
create procedure postrider_number(in most int, in whole boolean)
    modifies sql data
begin
    declare before_seq, before_reached, taken, top, fresh, low, high bigint default 0;
    declare hole_first, hole_last, hole_since bigint;
    declare done, needed boolean default false;
    declare runs cursor for
        select min(id), max(id)
        from (select n.id, n.id - row_number() over (order by n.id) as run
              from postrider_numbered n where n.seq > before_seq and n.id <= before_reached) islands
        group by run order by min(id);
    declare continue handler for not found set done = true;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;

    -- A statement of its own: what is selected within an `if` is read with locks, and would wait for publishers.
    select whole
           or exists (select 1 from postrider_arrival a
                      where a.id > (select r.reached from postrider_numbering r where r.one = 1))
           or exists (select 1 from postrider_hole h straight_join postrider_arrival a on a.id between h.first_id and h.last_id)
    into needed;
    if needed then
        set transaction isolation level read committed;
        start transaction;
        select seq, reached into before_seq, before_reached from postrider_numbering where one = 1 for update;
        if whole then
            insert into postrider_numbered (seq, id, late)
            select before_seq + row_number() over (order by arrived.id), arrived.id, arrived.id <= before_reached
            from (select a.id from postrider_arrival a order by a.id limit most) arrived;
        else
            insert into postrider_numbered (seq, id, late)
            select before_seq + row_number() over (order by arrived.id), arrived.id, arrived.id <= before_reached
            from (select found.id
                  from (select late.id
                        from (select a.id from postrider_hole h
                              straight_join postrider_arrival a on a.id between h.first_id and h.last_id
                              order by a.id limit most) late
                        union all
                        select next.id
                        from (select a.id from postrider_arrival a where a.id > before_reached order by a.id limit most) next) found
                  order by found.id limit most) arrived;
        end if;
        set taken = row_count();

        if taken > 0 then
            delete a from postrider_numbered n straight_join postrider_arrival a on a.id = n.id where n.seq > before_seq;
            select max(n.id), sum(n.id > before_reached) into top, fresh from postrider_numbered n where n.seq > before_seq;

            if top - before_reached > fresh then
                insert into postrider_hole (first_id, last_id, since)
                select gap.previous + 1, gap.id - 1, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))
                from (select n.id, coalesce(lag(n.id) over (order by n.id), before_reached) as previous
                      from postrider_numbered n where n.seq > before_seq and n.id > before_reached) gap
                where gap.id - gap.previous > 1;
            end if;

            if fresh < taken then
                open runs;
                set done = false;
                fetch runs into low, high;
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
                    fetch runs into low, high;
                end while;
                close runs;
            end if;

            update postrider_numbering set seq = before_seq + taken, reached = greatest(before_reached, top) where one = 1;
        end if;
        commit;
    end if;
    select taken as taken, r.seq, b.rings
    from postrider_numbering r join postrider_bell b on b.one = r.one where r.one = 1;
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
