-- Relays make themselves known, and who paused a subscription is kept. Publishers touch neither table.

-- A relay as it said of itself, a row a start: two relays of one name are two rows. Written when something changes and every 20
-- seconds otherwise, deleted when the relay ends; one that ended without a word is forgotten a day later.
create table {schema}.relay (
    id         uuid primary key,
    name       text not null,
    host       text not null,
    process    bigint not null,
    version    text not null,
    started_at timestamptz not null,
    seen_at    timestamptz not null,
    runs       text not null
);

alter table {schema}.subscription add column paused_at timestamptz, add column paused_by text, add column paused_why text;

-- May relay: record, read, claim, settle, and sweep by the functions; not change or delete an event.
create or replace function {schema}.grant_relay(to_role text) returns void language plpgsql as $$
begin
    perform {schema}.grant_record(to_role);
    execute format('grant select on all tables in schema {schema} to %I', to_role);
    execute format('grant select on all sequences in schema {schema} to %I', to_role);
    execute format('grant update on sequence {schema}.bell to %I', to_role);
    execute format('grant insert, update, delete on {schema}.subscription, {schema}.lane, {schema}.settled_batch, '
                   '{schema}.delivery, {schema}.duty, {schema}.inbox, {schema}.relay to %I', to_role);
    execute format('grant insert on {schema}.audit, {schema}.archive to %I', to_role);
    execute format('grant execute on function {schema}.sweep(boolean, timestamptz, timestamptz, bigint, integer), '
                   '{schema}.take_events(boolean, timestamptz, bigint, integer), '
                   '{schema}.sweep_history(timestamptz, integer), {schema}.sweep_archive(timestamptz), '
                   '{schema}.sweep_inbox(timestamptz, timestamptz, integer), {schema}.arrive() to %I', to_role);
end
$$;

-- Roles that may relay already go on doing so.
do $$
declare
    who text;
begin
    for who in
        select distinct r.rolname from pg_class c
        cross join lateral aclexplode(c.relacl) as a
        join pg_roles r on r.oid = a.grantee
        where c.oid = '{schema}.lane'::regclass and a.privilege_type = 'UPDATE'
    loop
        execute format('grant select, insert, update, delete on {schema}.relay to %I', who);
    end loop;
end
$$;
