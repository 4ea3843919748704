-- The log: events, the counters of sequenced keys, the archive, and the functions that publishers use.
-- {schema} is the quoted name of the schema, {channel} the quoted name of its notification channel.

create sequence {schema}.event_id as bigint cache 1;

create table {schema}.event (
    id             bigint primary key,
    tx_id          xid8 not null,
    event_id       uuid not null,
    stream         varchar(200) not null default 'events',
    event_type     varchar(200) not null,
    aggregate_type varchar(200) not null,
    aggregate_id   varchar(500) not null,
    ordering_key   varchar(500),
    sequence       bigint,
    max_attempts   integer,
    occurred_at    timestamptz not null default clock_timestamp(),
    recorded_at    timestamptz not null,
    headers        json not null default '{}',
    payload        json not null default 'null',
    content_type   varchar(200),
    content        bytea,
    constraint event_id_is_unique unique (event_id)
);

-- The late rows of a transaction, in the order of their ids.
create index event_tx on {schema}.event (tx_id, id);

comment on table {schema}.event is
    'Events, written once. Insert event_type, aggregate_type, aggregate_id and payload; if it is not JSON, content_type and content instead of payload; id, tx_id and recorded_at are set whatever is given. Give any sequence to have the next one of the key.';

-- The last number handed out per ordering key, for events that asked for one.
create table {schema}.counter (
    key   text primary key,
    value bigint not null
) with (fillfactor = 50);

-- What retention moved away, by months (UTC) of its recording: archive_2026_11 and so on, made by the sweep that needs one.
-- To drop a month is cheap, however much is in it. An index over all of it can't be unique without the month, so what keeps an
-- event from being here twice is the log: it leaves the log in the transaction that puts it here, and while it is there its
-- event_id is unique. An event_id may have been used again after its first event was archived.
create table {schema}.archive (
    id             bigint not null,
    event_id       uuid not null,
    stream         text not null,
    event_type     text not null,
    aggregate_type text not null,
    aggregate_id   text not null,
    ordering_key   text,
    sequence       bigint,
    max_attempts   integer,
    occurred_at    timestamptz not null,
    recorded_at    timestamptz not null,
    headers        json not null,
    payload        json not null,
    content_type   text,
    content        bytea,
    archived_at    timestamptz not null,
    primary key (id, recorded_at)
) partition by range (recorded_at);

create index archive_event on {schema}.archive (event_id);

-- The months that there are, and how many events went into each: so that nobody has to count them to drop one.
create table {schema}.archive_month (
    month  date primary key,
    events bigint not null
) with (fillfactor = 50);

-- When the last relay that fell asleep is to be rung until, in microseconds since 1970. A sequence, because
-- setval is seen by everyone at once, leaves no dead rows and takes no row lock.
create sequence {schema}.bell as bigint cache 1 minvalue 0 start 0;
select setval('{schema}.bell', 0, true);

-- A UUIDv7: 48 bits of milliseconds in front of what a random one has behind its version digit.
create function {schema}.new_event_id() returns uuid language sql volatile as $$
    select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
            || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;

alter table {schema}.event alter event_id set default {schema}.new_event_id();

-- What the order of an event is kept by.
create function {schema}.key_of(ordering_key text, aggregate_type text, aggregate_id text) returns text
language sql immutable parallel safe as $$
    select coalesce(ordering_key, aggregate_type || ':' || aggregate_id)
$$;

-- The lane hash of a key, by the function that spreads rows over hash partitions: what it gives must outlive an upgrade
-- of the server, and it costs a small part of what MD5 does. It may differ between platforms: see arrive(). Made when a lane of
-- several reads, not when an event is recorded: publishers pay nothing for lanes.
create function {schema}.hash_of(key text) returns integer language sql immutable strict parallel safe as $$
    select (hashtextextended(key collate "C", 0) & 2147483647)::integer
$$;

-- The next number of a key. The counter row stays locked until the transaction ends, so that numbers have no
-- gaps and ids follow them; looked up again under that lock, an id that is taken uses up no number. It runs
-- as the owner: who may record may not set counters.
create function {schema}.next_in_key(wanted_key text, wanted_event uuid) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    last bigint;
begin
    if pg_trigger_depth() = 0 then
        raise exception 'postrider: numbers are handed out to events only' using errcode = 'insufficient_privilege';
    end if;
    insert into {schema}.counter as c (key, value) values (wanted_key, 0)
        on conflict (key) do update set value = c.value returning value into last;
    if exists (select from {schema}.event where event_id = wanted_event) then
        return last;
    end if;
    update {schema}.counter set value = last + 1 where key = wanted_key;
    return last + 1;
end
$$;

-- Rings, if the time until which somebody sleeps has not passed.
create function {schema}.ring() returns void language plpgsql as $$
begin
    if pg_sequence_last_value('{schema}.bell') > date_part('epoch', clock_timestamp()) * 1000000 then
        perform pg_notify({channel}, '');
    end if;
end
$$;

-- Before each row: first the transaction takes its xid, then the key's counter, and only then the id. A reader
-- that has seen a higher id can therefore tell by the xid whether this row may still appear. The bell is read after
-- the xid was taken, too: who finds that nobody sleeps is seen as running by a relay that falls asleep afterwards.
-- It is one trigger, with few expressions, and the table has no check constraint, because the database prepares each of
-- them anew for every transaction: measured, nine checks and a second trigger cost a publisher 15 % of its rate.
-- So it does only what protects the log. What protects publishers from mistakes is in record() and in the libraries.
create function {schema}.before_record() returns trigger language plpgsql as $$
begin
    new.tx_id := pg_current_xact_id();
    if new.sequence is not null or pg_sequence_last_value('{schema}.bell') > 0 then
        if new.sequence is not null then
            new.sequence := {schema}.next_in_key(
                {schema}.key_of(new.ordering_key, new.aggregate_type, new.aggregate_id), new.event_id);
        end if;
        perform {schema}.ring();
    end if;
    new.id := nextval('{schema}.event_id');
    new.recorded_at := clock_timestamp();
    return new;
end
$$;

create trigger before_record before insert on {schema}.event
    for each row execute function {schema}.before_record();

create function {schema}.refuse() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and coalesce(current_setting('postrider.sweeping', true), '') = 'on' then
        return null;
    end if;
    raise exception 'postrider: events can''t be changed: % of %.% is refused', lower(tg_op), tg_table_schema, tg_table_name
        using errcode = 'restrict_violation',
              hint = 'Record another event that corrects it. Retention deletes through sweep() only.';
end
$$;

create trigger refuse before update or delete or truncate on {schema}.event
    for each statement execute function {schema}.refuse();

-- Whether JSON has a NUL in a string. An escaped backslash before u0000 is none, and jsonb knows.
create function {schema}.has_nul(value json) returns boolean language plpgsql immutable as $$
begin
    perform value::jsonb;
    return false;
exception
    when untranslatable_character then return true;
    when others then return false;
end
$$;

-- For publishers in any language: record an event in the transaction that calls it.
create function {schema}.record(
    stream         text,
    event_type     text,
    aggregate_type text,
    aggregate_id   text,
    payload        json,
    headers        json default '{}',
    event_id       uuid default null,
    occurred_at    timestamptz default null,
    ordering_key   text default null,
    sequenced      boolean default false,
    max_attempts   integer default null
) returns uuid language plpgsql volatile as $$
declare
    new_id  uuid := coalesce($7, {schema}.new_event_id());
    problem text := case
        when coalesce(octet_length($1) not between 1 and 200, true) then 'the stream has 1 to 200 bytes'
        when coalesce(octet_length($2) not between 1 and 200, true) then 'the event_type has 1 to 200 bytes'
        when coalesce(octet_length($3) not between 1 and 200, true) then 'the aggregate_type has 1 to 200 bytes'
        when coalesce(octet_length($4) not between 1 and 500, true) then 'the aggregate_id has 1 to 500 bytes'
        when octet_length($9) not between 1 and 500 then 'the ordering_key has 1 to 500 bytes'
        when $5 is null then 'the payload is missing; JSON null is a payload'
        when position('\u0000' in $5::text) > 0 and {schema}.has_nul($5)
            then 'the payload has a NUL character (\u0000) in a string, which no database can keep as text'
        when json_typeof($6) <> 'object' then 'the headers are a JSON object'
        when $11 < 1 then 'max_attempts is at least 1: it counts the first try'
    end;
begin
    if problem is not null then
        raise exception 'postrider: the event can''t be recorded: %', problem using errcode = 'check_violation';
    end if;
    insert into {schema}.event (stream, event_type, aggregate_type, aggregate_id, payload, headers, event_id,
                                occurred_at, ordering_key, sequence, max_attempts)
    values ($1, $2, $3, $4, $5, coalesce($6, '{}'), new_id, coalesce($8, clock_timestamp()), $9,
            case when $10 then 0 end, $11);
    return new_id;
end
$$;
