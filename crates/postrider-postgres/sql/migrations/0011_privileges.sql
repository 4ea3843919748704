-- What only our own roles may hold or call. Functions are replaced and a small table is added: publishers and relays go on.

-- Whose turn it is: a sweep and a replay keep out of each other's way by these rows. An advisory lock did before, and anybody who knows
-- its number can hold that for ever; a row is locked only by who may update it.
create table {schema}.turn (
    name text primary key
);
insert into {schema}.turn values ('sweep'), ('inbox');

-- As before, by a row.
create or replace function {schema}.sweep_alone() returns void language plpgsql volatile as $$
begin
    perform from {schema}.turn t where t.name = 'sweep' for update skip locked;
    if not found then
        raise exception 'postrider: another sweep, or a replay, is at work' using errcode = 'lock_not_available';
    end if;
end
$$;

-- As before, by a row, which any number of sweeps share.
create or replace function {schema}.sweep_inbox(cutoff timestamptz, since timestamptz, most integer, out taken bigint, out reached timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    -- A replay that is under way has just looked at what is known.
    perform from {schema}.turn t where t.name = 'inbox' for key share skip locked;
    if not found then
        raise exception 'postrider: a replay is at work' using errcode = 'lock_not_available';
    end if;
    with gone as (
        delete from {schema}.inbox i
        where (i.consumer, i.event_id) in (select f.consumer, f.event_id from {schema}.forgettable(cutoff, since, most) f)
        returning i.consumer, i.handled_at
    ), noted as (
        insert into {schema}.forgotten as f (consumer, handled_at) select consumer, max(handled_at) from gone group by consumer
        on conflict (consumer) do update set handled_at = greatest(f.handled_at, excluded.handled_at)
    )
    select count(*), max(handled_at) into taken, reached from gone;
end
$$;

-- As before, with names that mean the same whatever the publisher's search_path is: the owner's rights go with it now.
create or replace function {schema}.ring() returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if pg_sequence_last_value('{schema}.bell') > date_part('epoch', clock_timestamp()) * 1000000 then
        perform pg_notify({channel}, '');
    end if;
end
$$;

-- As before, but as the owner: so that nobody else need be able to call next_in_key. Who may call that could take numbers of any key,
-- from a trigger on a table of their own. Every name is qualified, because the path is the publisher's.
create or replace function {schema}.before_record() returns trigger language plpgsql security definer as $$
begin
    new.tx_id := pg_catalog.pg_current_xact_id();
    if new.sequence is not null
       or new.occurred_at operator(pg_catalog.<) '0001-01-01 00:00:00+00'::pg_catalog.timestamptz
       or new.occurred_at operator(pg_catalog.>=) '9999-12-31 00:00:00+00'::pg_catalog.timestamptz
       or pg_catalog.pg_sequence_last_value('{schema}.bell') operator(pg_catalog.>) 0 then
        perform {schema}.check_time(new.occurred_at);
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

-- Who could call it could also make it the trigger of a table of their own. A trigger runs whoever inserts.
revoke execute on function {schema}.before_record(), {schema}.next_in_key(text, uuid) from public;

-- May record and nothing else: not read, not change, not see what others recorded but for the ids.
create or replace function {schema}.grant_record(to_role text) returns void language plpgsql as $$
begin
    execute format('grant usage on schema {schema} to %I', to_role);
    execute format('grant insert, select (event_id) on {schema}.event to %I', to_role);
    execute format('grant select on {schema}.migration to %I', to_role);
end
$$;

-- As before, with what takes turns.
create or replace function {schema}.grant_relay(to_role text) returns void language plpgsql as $$
begin
    perform {schema}.grant_record(to_role);
    execute format('grant select on all tables in schema {schema} to %I', to_role);
    execute format('grant select on all sequences in schema {schema} to %I', to_role);
    execute format('grant update on sequence {schema}.bell to %I', to_role);
    execute format('grant insert, update, delete on {schema}.subscription, {schema}.lane, {schema}.settled_batch, '
                   '{schema}.delivery, {schema}.duty, {schema}.inbox, {schema}.relay to %I', to_role);
    execute format('grant update on {schema}.turn to %I', to_role);
    execute format('grant insert on {schema}.audit, {schema}.archive to %I', to_role);
    execute format('grant execute on function {schema}.sweep(boolean, timestamptz, timestamptz, bigint, integer), '
                   '{schema}.take_events(boolean, timestamptz, bigint, integer), '
                   '{schema}.sweep_history(timestamptz, integer), {schema}.sweep_archive(timestamptz), '
                   '{schema}.sweep_inbox(timestamptz, timestamptz, integer), {schema}.arrive() to %I', to_role);
end
$$;

-- Roles that may relay already take turns as well, and those that may record need the sequences no more.
do $$
declare
    role record;
begin
    for role in
        select distinct r.rolname from pg_class c, aclexplode(c.relacl) as a join pg_roles r on r.oid = a.grantee
        where c.oid = '{schema}.lane'::regclass and a.privilege_type = 'UPDATE' and a.grantee <> c.relowner
    loop
        execute format('grant select, update on {schema}.turn to %I', role.rolname);
    end loop;
    for role in
        select distinct r.rolname from pg_class c, aclexplode(c.relacl) as a join pg_roles r on r.oid = a.grantee
        where c.oid = '{schema}.event_id'::regclass and a.privilege_type = 'USAGE' and a.grantee <> c.relowner
    loop
        execute format('revoke usage on sequence {schema}.event_id from %I', role.rolname);
    end loop;
end
$$;
