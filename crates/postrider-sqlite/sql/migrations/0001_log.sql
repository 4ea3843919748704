-- The log: events, the counters of sequenced keys, the archive.
-- Times are INTEGER microseconds since 1970 (SQLite's own clock has milliseconds); event ids are 16-byte blobs.
-- SQLite has one writer at a time, so the order of ids is the order of commits.

create table postrider_event (
    id             integer primary key autoincrement,
    -- A UUIDv7: 48 bits of milliseconds, then random. Its bytes are taken from {bytes}, all 256 of them, one by one: an
    -- SQLite older than 3.41 has no unhex(), and refuses any insert into a table that names it, whether an id is given or not.
    event_id       blob not null on conflict replace default (cast(
                       substr({bytes}, 1 + ((cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) >> 40) & 255), 1)
                       || substr({bytes}, 1 + ((cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) >> 32) & 255), 1)
                       || substr({bytes}, 1 + ((cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) >> 24) & 255), 1)
                       || substr({bytes}, 1 + ((cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) >> 16) & 255), 1)
                       || substr({bytes}, 1 + ((cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) >> 8) & 255), 1)
                       || substr({bytes}, 1 + ((cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) >> 0) & 255), 1)
                       || substr({bytes}, 113 + (random() & 15), 1) || randomblob(1)
                       || substr({bytes}, 129 + (random() & 63), 1) || randomblob(7) as blob)),
    stream         text not null on conflict replace default 'events',
    event_type     text not null,
    aggregate_type text not null,
    aggregate_id   text not null,
    ordering_key   text,
    sequence       integer,
    max_attempts   integer,
    occurred_at    integer not null on conflict replace
                       default (cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000),
    recorded_at    integer not null on conflict replace
                       default (cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000),
    headers        text not null on conflict replace default '{}',
    payload        text,
    content_type   text,
    content        blob,
    constraint event_id_is_unique unique (event_id),
    constraint event_id_has_16_bytes check (length(event_id) = 16),
    constraint event_stream_length check (length(cast(stream as blob)) between 1 and 200 and instr(stream, char(0)) = 0),
    constraint event_type_length check (length(cast(event_type as blob)) between 1 and 200 and instr(event_type, char(0)) = 0),
    constraint event_aggregate_type_length check (
        length(cast(aggregate_type as blob)) between 1 and 200 and instr(aggregate_type, char(0)) = 0),
    constraint event_aggregate_id_length check (
        length(cast(aggregate_id as blob)) between 1 and 500 and instr(aggregate_id, char(0)) = 0),
    constraint event_ordering_key_length check (
        length(cast(ordering_key as blob)) between 1 and 500 and instr(ordering_key, char(0)) = 0),
    constraint event_max_attempts_positive check (max_attempts between 1 and 2147483647),
    constraint event_times_are_microseconds check (
        occurred_at between -377705116800000000 and 253402300799999999
        and recorded_at between -377705116800000000 and 253402300799999999),
    constraint event_headers_are_an_object check (
        case when json_valid(headers) then json_type(headers) = 'object' else 0 end),
    constraint event_payload_is_json check (payload is null or json_valid(payload)),
    constraint event_has_json_or_content check (
        (payload is not null and content_type is null and content is null)
        or (payload is null and content_type is not null and content is not null))
) strict;

-- The last number handed out per ordering key, for events that asked for one.
create table postrider_counter (
    key   text primary key,
    value integer not null
) strict, without rowid;

-- What one of Postrider's own statements is doing to the log right now; empty outside of it.
create table postrider_guard (
    work text primary key
) strict, without rowid;

-- An event id may have been used again after its first event was archived: not unique here.
create table postrider_archive (
    id             integer primary key,
    event_id       blob not null,
    stream         text not null,
    event_type     text not null,
    aggregate_type text not null,
    aggregate_id   text not null,
    ordering_key   text,
    sequence       integer,
    max_attempts   integer,
    occurred_at    integer not null,
    recorded_at    integer not null,
    headers        text not null,
    payload        text,
    content_type   text,
    content        blob,
    archived_at    integer not null
) strict;

create index postrider_archive_event on postrider_archive (event_id);
create index postrider_archive_recorded on postrider_archive (recorded_at);

-- A taken id is refused before the row is: `insert or replace` would delete the old event past the trigger below.
create trigger postrider_event_once before insert on postrider_event
when exists (select 1 from postrider_event where event_id = new.event_id)
begin
    select raise(abort, 'postrider: the event id is already in the log');
end;

-- An id behind the readers would never be delivered, one far ahead would end the log.
-- sqlite_sequence is written only when an INSERT ends, so the rows before this one are looked at as well.
create trigger postrider_event_id after insert on postrider_event
when new.id <> 1 + max(
    coalesce((select seq from sqlite_sequence where name = 'postrider_event'), 0),
    coalesce((select id from postrider_event where id <> new.id order by id desc limit 1), 0))
begin
    select raise(abort, 'postrider: the id of an event can''t be chosen: leave id out and SQLite gives the next one');
end;

-- Any sequence asks for the next number of the key. A row that is not inserted uses up none.
create trigger postrider_event_number after insert on postrider_event
when new.sequence is not null
begin
    insert into postrider_counter (key, value)
    select coalesce(new.ordering_key, new.aggregate_type || ':' || new.aggregate_id), 0
    where not exists (
        select 1 from postrider_counter
        where key = coalesce(new.ordering_key, new.aggregate_type || ':' || new.aggregate_id));
    update postrider_counter set value = value + 1
    where key = coalesce(new.ordering_key, new.aggregate_type || ':' || new.aggregate_id);
    insert into postrider_guard (work) values ('number');
    update postrider_event
    set sequence = (select value from postrider_counter
                    where key = coalesce(new.ordering_key, new.aggregate_type || ':' || new.aggregate_id))
    where id = new.id;
    delete from postrider_guard where work = 'number';
end;

create trigger postrider_event_refuse_update before update on postrider_event
when not exists (select 1 from postrider_guard where work = 'number')
begin
    select raise(abort, 'postrider: events can''t be changed: record another event that corrects it');
end;

create trigger postrider_event_refuse_delete before delete on postrider_event
when not exists (select 1 from postrider_guard where work = 'sweep')
begin
    select raise(abort, 'postrider: events can''t be changed: delete is refused, only retention takes them (sweep)');
end;
