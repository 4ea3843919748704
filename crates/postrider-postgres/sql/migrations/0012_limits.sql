-- One limit of payloads for all publishers, whatever they record with. Functions are replaced: publishers and relays go on.

-- The largest payload in bytes. A function with a constant in it is the setting: the server puts the constant into the plan of the
-- trigger, where a table would be looked up for each row.
create function {schema}.max_payload() returns integer language sql immutable parallel safe as 'select 1048576';

-- Sets it. Plans that have the old one in them are made anew.
create function {schema}.set_max_payload(bytes integer) returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    if bytes is null or bytes < 1 then
        raise exception 'postrider: max_payload must be 1 byte or more' using errcode = 'numeric_value_out_of_range';
    end if;
    -- One at a time: a function that two replace at once fails for one of them.
    lock table {schema}.migration in share row exclusive mode;
    if {schema}.max_payload() = bytes then
        return;
    end if;
    execute format('create or replace function {schema}.max_payload() returns integer language sql immutable parallel safe as %L',
                   format('select %s', bytes));
end
$$;
revoke execute on function {schema}.set_max_payload(integer) from public;

-- A log that has events goes on taking what it took until somebody sets a limit: a migration must not refuse what publishers record.
do $$
begin
    if exists (select from {schema}.event) or exists (select from {schema}.archive) then
        perform {schema}.set_max_payload(1073741824);
    end if;
end
$$;

-- Refuses a payload that is too large, in the sentence of the libraries.
create function {schema}.check_payload(payload json, content bytea) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    size integer := greatest(octet_length(payload::text), octet_length(content));
begin
    if size > {schema}.max_payload() then
        raise exception 'postrider: the payload has % bytes, more than the limit of %; raise the limit or store it elsewhere and record a reference',
                        size, {schema}.max_payload()
            using errcode = 'string_data_right_truncation';
    end if;
end
$$;

-- As before, and it refuses a payload that is too large.
create or replace function {schema}.before_record() returns trigger language plpgsql security definer as $$
begin
    new.tx_id := pg_catalog.pg_current_xact_id();
    if new.sequence is not null
       or new.occurred_at operator(pg_catalog.<) '0001-01-01 00:00:00+00'::pg_catalog.timestamptz
       or new.occurred_at operator(pg_catalog.>=) '9999-12-31 00:00:00+00'::pg_catalog.timestamptz
       or pg_catalog.octet_length(new.payload::pg_catalog.text) operator(pg_catalog.>) {schema}.max_payload()
       or pg_catalog.octet_length(new.content) operator(pg_catalog.>) {schema}.max_payload()
       or pg_catalog.pg_sequence_last_value('{schema}.bell') operator(pg_catalog.>) 0 then
        perform {schema}.check_time(new.occurred_at), {schema}.check_payload(new.payload, new.content);
        if new.sequence is not null then
            new.sequence := {schema}.next_in_key(
                coalesce(new.ordering_key, new.aggregate_type operator(pg_catalog.||) ':' operator(pg_catalog.||) new.aggregate_id),
                new.event_id);
        end if;
        perform {schema}.ring();
    end if;
    new.id := pg_catalog.nextval('{schema}.event_id');
    new.recorded_at := pg_catalog.clock_timestamp();
    return new;
end
$$;
