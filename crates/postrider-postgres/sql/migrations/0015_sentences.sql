-- Says what is wrong with an event as the libraries do. A function is replaced: publishers and relays go on.

-- As before, with the rule in each sentence.
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
        when coalesce(octet_length($1) not between 1 and 200, true) then 'stream must have 1 to 200 bytes'
        when coalesce(octet_length($2) not between 1 and 200, true) then 'event_type must have 1 to 200 bytes'
        when coalesce(octet_length($3) not between 1 and 200, true) then 'aggregate_type must have 1 to 200 bytes'
        when coalesce(octet_length($4) not between 1 and 500, true) then 'aggregate_id must have 1 to 500 bytes'
        when octet_length($9) not between 1 and 500 then 'ordering_key must have 1 to 500 bytes'
        when $5 is null then 'payload must not be null; JSON null is a payload'
        when position(E'\\u0000' in $5::text) > 0 and {schema}.has_nul($5)
            then E'payload must not contain a NUL character (\\u0000) in a string, because a database can''t store it as text'
        when json_typeof($6) <> 'object' then 'headers must be a JSON object'
        when $11 < 1 then 'max_attempts must be at least 1; it includes the first attempt'
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
