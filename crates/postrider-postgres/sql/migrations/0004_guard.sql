-- What keeps one bad row, one foreign history and one odd session from costing an event. Everything here replaces functions
-- or adds to small tables: no trigger is dropped, so publishers go on and none of their rows goes without its number.

-- As before, and it refuses a time that no reader can show: infinity, or milliseconds that were taken for seconds. It is part of
-- the one condition that is there anyway, because each further expression is prepared anew in every transaction. Names are
-- qualified: the trigger runs with the publisher's search_path, and its numbers must come from nowhere else.
create or replace function {schema}.before_record() returns trigger language plpgsql as $$
begin
    new.tx_id := pg_catalog.pg_current_xact_id();
    if new.sequence is not null
       or new.occurred_at operator(pg_catalog.<) '0001-01-01 00:00:00+00'::pg_catalog.timestamptz
       or new.occurred_at operator(pg_catalog.>=) '9999-12-31 00:00:00+00'::pg_catalog.timestamptz
       or pg_catalog.pg_sequence_last_value('{schema}.bell') operator(pg_catalog.>) 0 then
        perform {schema}.check_time(new.occurred_at);
        if new.sequence is not null then
            new.sequence := {schema}.next_in_key(
                {schema}.key_of(new.ordering_key, new.aggregate_type, new.aggregate_id), new.event_id);
        end if;
        perform {schema}.ring();
    end if;
    new.id := pg_catalog.nextval('{schema}.event_id');
    new.recorded_at := pg_catalog.clock_timestamp();
    return new;
end
$$;

create function {schema}.check_time(occurred_at timestamptz) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if occurred_at < '0001-01-01 00:00:00+00' or occurred_at >= '9999-12-31 00:00:00+00' then
        raise exception 'postrider: occurred_at must be a time between the years 1 and 9999'
            using errcode = 'datetime_field_overflow',
                  hint = 'to_timestamp() takes seconds: divide milliseconds by 1000. If the time is not known, leave occurred_at out.';
    end if;
end
$$;

-- A database with the encoding SQL_ASCII takes any byte. Only there every row's texts are checked.
create function {schema}.check_text() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform convert_from(textsend(concat_ws(' ', new.stream, new.event_type, new.aggregate_type, new.aggregate_id,
                                            new.ordering_key, new.content_type, new.headers, new.payload)), 'UTF8');
    return new;
exception
    when character_not_in_repertoire then
        raise exception 'postrider: the texts of an event must be UTF-8'
            using errcode = 'character_not_in_repertoire', hint = 'Set the client''s encoding to what it sends.';
end
$$;

do $$
begin
    if pg_catalog.getdatabaseencoding() = 'SQL_ASCII' then
        create trigger check_text before insert on {schema}.event for each row execute function {schema}.check_text();
    end if;
end
$$;

-- As before, with strings that mean the same whatever standard_conforming_strings is.
create or replace function {schema}.record(
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
        when position(E'\\u0000' in $5::text) > 0 and {schema}.has_nul($5)
            then E'the payload has a NUL character (\\u0000) in a string, which no database can keep as text'
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

-- A text as the database can send it, or a mark in its place: a character that UTF-8 lacks, or a text too large for an answer,
-- makes the server refuse the whole statement. Only for reading again what was refused: see careful() in sql.rs.
create function {schema}.sendable(value text) returns text language plpgsql stable as $$
begin
    if octet_length(value) <= 268435456 then
        perform convert_to(value, 'UTF8');
        return value;
    end if;
    return case when value is not null then 'postrider: unreadable' end;
exception when others then
    return 'postrider: unreadable';
end
$$;

create function {schema}.sendable(value json) returns json language plpgsql stable as $$
begin
    if octet_length(value::text) <= 268435456 then
        perform convert_to(value::text, 'UTF8');
        return value;
    end if;
    return '"postrider: unreadable"';
exception when others then
    return '"postrider: unreadable"';
end
$$;

create function {schema}.sendable(value bytea) returns bytea language sql stable as $$
    select case when octet_length(value) > 268435456 then convert_to('postrider: unreadable', 'UTF8') else value end
$$;

-- A header for people who search. JSON may hold what can't be text (a NUL, half a character) or be nested too deep to look into:
-- then there is none.
create function {schema}.header(headers json, name text) returns text language plpgsql stable as $$
begin
    return headers ->> name;
exception when others then
    return null;
end
$$;

-- Where the log has lived, visit by visit: `system` names a visit (the first one in a cluster has the cluster's identifier),
-- `number` orders them, and the last one is now. A log may come back to a cluster: the transaction ids of its first stay there
-- mean nothing in the second, because others were written in between. `encoding` is the database's, `hashed_in` the one whose
-- bytes of a key are hashed: it stays when the encoding changes, so that keys stay in their lanes.
alter table {schema}.cluster add column identifier bigint, add column number bigint, add column encoding text,
    add column hashed_in text;
update {schema}.cluster c
set identifier = c.system, number = n.number,
    encoding = case when c.system = {schema}.this_system() then getdatabaseencoding() end,
    hashed_in = case when c.system = {schema}.this_system() then getdatabaseencoding() end
from (select system, row_number() over (order by since, system) as number from {schema}.cluster) as n
where n.system = c.system;
alter table {schema}.cluster alter identifier set not null, alter number set not null;

-- This visit. As the owner: who may look at the view of states need not see this table.
create or replace function {schema}.this_system() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select c.system from {schema}.cluster c order by c.number desc, c.since desc limit 1
$$;

-- The lane hash of a key by its bytes in another encoding. An array's hash is 31 and the hash of its only element, and that of a
-- bytea is that of a text with these bytes. A key that this encoding can't write is new here, and is hashed as it is.
create function {schema}.hash_in(key text, encoding name) returns integer language plpgsql immutable strict parallel safe as $$
begin
    return (((hash_array_extended(array[convert_to(key, encoding)], 0) & 4294967295) - 31) & 2147483647)::integer;
exception when others then
    return (hashtextextended(key collate "C", 0) & 2147483647)::integer;
end
$$;

-- Whether the log is where it was when it last arrived somewhere: the same cluster and encoding, no second history put beside it,
-- no lane of a visit that nobody knows, no row from the future of this cluster. It looks at a few rows only.
create function {schema}.is_home() returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    latest {schema}.cluster%rowtype;
begin
    select * into latest from {schema}.cluster order by number desc, since desc limit 1;
    return latest.identifier = (select system_identifier from pg_control_system())
       and latest.encoding is not distinct from getdatabaseencoding()
       and not exists (select from {schema}.cluster c where c.number = latest.number and c.system <> latest.system)
       and not exists (select from {schema}.lane l where not exists (select from {schema}.cluster c where c.system = l.system))
       and not exists (
           select from (
               (select e.tx_id from {schema}.event e where e.id > latest.floor order by e.id limit 1)
               union all
               (select e.tx_id from {schema}.event e where e.id > latest.floor order by e.id desc limit 1)) as ends
           where ends.tx_id >= pg_snapshot_xmax(pg_current_snapshot()));
end
$$;

-- Refuses data that was loaded into a schema with its trigger on: the events have other numbers now than the lanes, the history
-- and the deliveries know. Such a log has two beginnings: the one of this schema and the one of the data.
create function {schema}.refuse_renumbered() returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    born {schema}.cluster%rowtype;
begin
    select * into born from {schema}.cluster c
    where c.identifier = (select system_identifier from pg_control_system())
      and (exists (select from {schema}.cluster o where o.number = c.number and o.system <> c.system)
           or exists (select from {schema}.lane l where not exists (select from {schema}.cluster k where k.system = l.system)))
    order by c.since desc limit 1;
    if found and exists (
        select from {schema}.event e
        where e.id <= (select max(l.frontier) from {schema}.lane l where l.system <> born.system)
          and e.recorded_at >= born.since and e.tx_id < pg_snapshot_xmax(pg_current_snapshot())) then
        raise exception 'postrider: the data of this log was restored with the trigger before_record on, and its events were numbered anew: subscriptions would lose and repeat events'
            using errcode = 'data_corrupted',
                  hint = 'Drop the schema {schema} and restore the dump as a whole, not its data only; or restore the data with --disable-triggers.';
    end if;
end
$$;

-- Hashes the keys of all deliveries anew, from their events: a delivery may keep its key in a short form.
create function {schema}.hash_deliveries() returns void language sql volatile set search_path = pg_catalog, pg_temp as $$
    update {schema}.delivery d
    set lane_hash = {schema}.hash_of({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id))
    from {schema}.event e
    where e.id = d.id and e.event_id = d.event_id and d.state in ('waiting', 'retrying', 'dead')
$$;

-- The lanes of a log that comes from a database with another encoding: with several lanes keys keep the hash they had.
create function {schema}.keep_hashes(known text) returns text language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    here text := getdatabaseencoding();
begin
    if known = here then
        return known;
    end if;
    if not exists (select from {schema}.subscription where lanes > 1 or lanes_next is not null) then
        create or replace function {schema}.hash_of(key text) returns integer language sql immutable strict parallel safe as
            'select (hashtextextended(key collate "C", 0) & 2147483647)::integer';
        perform {schema}.hash_deliveries();
        return here;
    end if;
    if known is null then
        -- Only what is not ASCII has other bytes in another encoding.
        if exists (select from {schema}.event e
                   where octet_length({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id))
                       <> length({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id))) then
            raise exception 'postrider: the encoding of the database that this log comes from is not known, and its subscriptions have several lanes: keys might change lanes, and events would be lost'
                using errcode = 'data_corrupted',
                      hint = 'Run, with that encoding (this database has ' || here || '): update {schema}.cluster set encoding = ''' || here
                             || ''', hashed_in = ''' || here || ''' where hashed_in is null';
        end if;
        return here;
    end if;
    execute format('create or replace function {schema}.hash_of(key text) returns integer language sql immutable strict parallel safe as %L',
                   format('select {schema}.hash_in(key, %L)', known));
    return known;
end
$$;

-- The start of a relay. In another cluster than before, or with another history: everything up to `floor` was written before, or
-- is committed; the lock waits for transactions that have inserted and stops new ones meanwhile.
create or replace function {schema}.arrive() returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    here     bigint := (select system_identifier from pg_control_system());
    origin   {schema}.cluster%rowtype;
    highest  bigint;
    hashed   text;
begin
    select greatest(coalesce((select max(id) from {schema}.event), 0), coalesce((select max(frontier) from {schema}.lane), 0))
        into highest;
    if (select last_value from {schema}.event_id) < highest then
        raise exception 'postrider: the sequence {schema}.event_id is behind the log (% < %): new events would never be read',
                        (select last_value from {schema}.event_id), highest
            using errcode = 'data_corrupted',
                  hint = format('Stop the publishers and run: select setval(''{schema}.event_id'', %s)', highest);
    end if;
    if (select seqcache from pg_sequence where seqrelid = '{schema}.event_id'::regclass) <> 1 then
        raise exception 'postrider: the sequence {schema}.event_id has a cache: events would be lost'
            using errcode = 'data_corrupted', hint = 'Run: alter sequence {schema}.event_id cache 1';
    end if;
    if not {schema}.numbers_rows() then
        raise exception 'postrider: the trigger before_record of {schema}.event is missing or off, or a column that it sets has a default: events would have no number'
            using errcode = 'data_corrupted',
                  hint = 'Run: alter table {schema}.event enable trigger user, alter id drop default, alter tx_id drop default, alter recorded_at drop default';
    end if;
    if {schema}.is_home() then
        return (select floor from {schema}.cluster where system = {schema}.this_system());
    end if;
    lock table {schema}.event in share row exclusive mode;
    -- Somebody else may have done it meanwhile.
    if {schema}.is_home() then
        return (select floor from {schema}.cluster where system = {schema}.this_system());
    end if;
    perform {schema}.refuse_renumbered();
    -- Where the data comes from: beside it there may be the beginning of this schema, which had none.
    select * into origin from {schema}.cluster order by number desc, (identifier = here), since desc limit 1;
    -- Keys would change lanes, and events between two lanes' positions would be lost or repeated.
    if exists (select from {schema}.cluster where hash <> {schema}.hash_of('postrider')) then
        if exists (select from {schema}.subscription where lanes > 1 or lanes_next is not null) then
            raise exception 'postrider: this server hashes keys otherwise than the one the log comes from: its lanes can''t be told apart'
                using errcode = 'data_corrupted',
                      hint = 'Where the log comes from, set every subscription to one lane and dump it again.';
        end if;
        perform {schema}.hash_deliveries();
        update {schema}.cluster set hash = {schema}.hash_of('postrider');
    end if;
    hashed := {schema}.keep_hashes(origin.hashed_in);
    delete from {schema}.cluster c
    where c.identifier = here and c.system <> origin.system
      and exists (select from {schema}.cluster o where o.number = c.number and o.system <> c.system)
      and not exists (select from {schema}.lane l where l.system = c.system);
    insert into {schema}.cluster (system, floor, identifier, number, encoding, hashed_in)
    select case when exists (select from {schema}.cluster where system = here)
                then hashtextextended(gen_random_uuid()::text, 0) else here end,
           greatest((select last_value from {schema}.event_id), coalesce((select max(id) from {schema}.event), 0),
                    coalesce((select max(frontier) from {schema}.lane), 0)),
           here, coalesce(max(number), 0) + 1, getdatabaseencoding(), hashed
    from {schema}.cluster;
    -- Of visits that nobody wrote down the lanes know no more than their own transaction ids.
    insert into {schema}.cluster (system, floor, identifier, number)
    select distinct l.system, 0, l.system, 0 from {schema}.lane l
    where not exists (select from {schema}.cluster c where c.system = l.system);
    -- A common position of the cluster that the log came from would be read by its snapshot: a new one is taken here.
    update {schema}.subscription set target = null where target is not null;
    return (select floor from {schema}.cluster where system = {schema}.this_system());
end
$$;

-- Whether every row gets its number, its transaction and its time: by the trigger, and by no default in its place.
create function {schema}.numbers_rows() returns boolean language sql stable set search_path = pg_catalog, pg_temp as $$
    select exists (select from pg_trigger t
                   where t.tgrelid = '{schema}.event'::regclass and t.tgname = 'before_record' and t.tgenabled in ('O', 'A'))
       and not exists (select from pg_attribute a
                       where a.attrelid = '{schema}.event'::regclass and a.attname in ('id', 'tx_id', 'recorded_at')
                         and (a.atthasdef or not a.attnotnull))
$$;
