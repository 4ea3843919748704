-- The first start in a cluster. Everything up to `floor` was written before, or is committed: the lock waits
-- for transactions that have inserted and stops new ones meanwhile.
create function {schema}.arrive() returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    ground  bigint;
    highest bigint;
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
    select floor into ground from {schema}.cluster where system = {schema}.this_system();
    if ground is not null then
        return ground;
    end if;
    -- Keys would change lanes, and events between two lanes' positions would be lost or repeated.
    if exists (select from {schema}.cluster where hash <> {schema}.hash_of('postrider')) then
        if exists (select from {schema}.subscription where lanes > 1 or lanes_next is not null) then
            raise exception 'postrider: this server hashes keys otherwise than the one the log comes from: its lanes can''t be told apart'
                using errcode = 'data_corrupted',
                      hint = 'Where the log comes from, set every subscription to one lane and dump it again.';
        end if;
        update {schema}.delivery set lane_hash = {schema}.hash_of(key);
        update {schema}.cluster set hash = {schema}.hash_of('postrider');
    end if;
    lock table {schema}.event in share row exclusive mode;
    insert into {schema}.cluster (system, floor)
    select {schema}.this_system(),
           greatest((select last_value from {schema}.event_id), coalesce((select max(id) from {schema}.event), 0),
                    coalesce((select max(frontier) from {schema}.lane), 0))
    on conflict do nothing;
    -- A common position of the cluster that the log came from would be read by its snapshot: a new one is taken here.
    update {schema}.subscription set target = null where target is not null;
    select floor into ground from {schema}.cluster where system = {schema}.this_system();
    return ground;
end
$$;

-- Born here: nothing was written elsewhere.
insert into {schema}.cluster (system, floor) values ({schema}.this_system(), 0);

-- What operators did. Rows are only added.
create table {schema}.audit (
    id           bigint generated always as identity primary key,
    at           timestamptz not null,
    who          text not null,
    what         text not null,
    why          text,
    subscription text,
    event_id     uuid
);

create function {schema}.refuse_audit() returns trigger language plpgsql as $$
begin
    raise exception 'postrider: what operators did stays written: % of %.% is refused',
                    lower(tg_op), tg_table_schema, tg_table_name using errcode = 'restrict_violation';
end
$$;

create trigger refuse_audit before update or delete or truncate on {schema}.audit
    for each statement execute function {schema}.refuse_audit();

-- A payload for people who query: jsonb where it can be, nothing where it can't (a number too long for it).
create function {schema}.as_jsonb(value json) returns jsonb language plpgsql immutable as $$
begin
    return value::jsonb;
exception when others then
    return null;
end
$$;

-- Where every event stands for every subscription that wants it, done ones included.
create view {schema}.event_state as
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id,
       {schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id) as ordering_key, e.sequence,
       s.name as subscription, p.lane,
       case
           when d.state in ('waiting', 'retrying') then 'retrying'
           when d.state in ('dead', 'discarded') then d.state
           when d.state = 'delivered' or p.is_read then 'done'
           when p.leased and e.id <= p.reading then 'processing'
           else 'pending'
       end as state,
       coalesce(d.attempts, case when p.is_read then 1 else 0 end) as attempts,
       coalesce(e.max_attempts, 0) as max_attempts,
       case when d.state = 'retrying' then d.next_at end as next_retry_at,
       coalesce(d.last_attempt_at, case when p.is_read then b.settled_at end) as last_attempt_at,
       case when d.state is not null then d.delivered_at when p.is_read then b.settled_at end as delivered_at,
       case when d.state is not null then d.delivered_by when p.is_read then b.settled_by end as delivered_by,
       case when p.leased then p.lease_owner end as lease_owner,
       case when p.leased then p.lease_until end as lease_until,
       d.error_code, d.error_message,
       e.occurred_at, e.recorded_at, {schema}.as_jsonb(e.headers) as headers,
       case when e.content_type is null then {schema}.as_jsonb(e.payload) end as payload,
       e.content_type, e.content
from {schema}.event e
cross join {schema}.subscription s
cross join lateral (
    select {schema}.hash_of({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id)) as hash
) h
join lateral (
    select l.lane, l.reading, l.lease_owner, l.lease_until,
           l.lease_owner is not null and l.lease_until > clock_timestamp()
               and l.lease_until <= clock_timestamp() + l.lease_for + interval '1 second' as leased,
           e.id <= l.frontier and (
               (l.system = {schema}.this_system()
                and e.id <= (select floor from {schema}.cluster where system = {schema}.this_system()))
               or pg_visible_in_snapshot(e.tx_id, l.snapshot)) as is_read
    from {schema}.lane l
    where l.subscription = s.name and l.lane = h.hash % s.lanes
) p on true
left join {schema}.delivery d on d.subscription = s.name and d.id = e.id
left join lateral (
    select found.settled_at, found.settled_by from (
        (select b.settled_at, b.settled_by, 1 as choice from {schema}.settled_batch b
         where b.late @> array[e.id] and b.subscription = s.name and b.lane = h.hash % b.lanes
         limit 1)
        union all
        (select b.settled_at, b.settled_by, 2 from {schema}.settled_batch b
         where b.subscription = s.name and b.last_id >= e.id and b.first_id <= e.id and b.lane = h.hash % b.lanes
         order by b.last_id limit 1)
    ) as found order by found.choice limit 1
) b on p.is_read
where (cardinality(s.streams) = 0 or e.stream like any (s.streams))
  and (cardinality(s.types) = 0 or e.event_type like any (s.types))
  and (s.since is null or e.recorded_at >= s.since)
  and not (e.id <= s.start_frontier and pg_visible_in_snapshot(e.tx_id, s.start_snapshot));

-- May record and nothing else: not read, not change, not see what others recorded but for the ids.
create function {schema}.grant_record(to_role text) returns void language plpgsql as $$
begin
    execute format('grant usage on schema {schema} to %I', to_role);
    execute format('grant insert, select (event_id) on {schema}.event to %I', to_role);
    execute format('grant usage on sequence {schema}.event_id to %I', to_role);
    execute format('grant select on sequence {schema}.bell to %I', to_role);
    execute format('grant select on {schema}.migration to %I', to_role);
end
$$;

-- May relay: record, read, claim, settle, and sweep by the functions; not change or delete an event.
create function {schema}.grant_relay(to_role text) returns void language plpgsql as $$
begin
    perform {schema}.grant_record(to_role);
    execute format('grant select on all tables in schema {schema} to %I', to_role);
    execute format('grant select on all sequences in schema {schema} to %I', to_role);
    execute format('grant update on sequence {schema}.bell to %I', to_role);
    execute format('grant insert, update, delete on {schema}.subscription, {schema}.lane, {schema}.settled_batch, '
                   '{schema}.delivery, {schema}.duty, {schema}.inbox to %I', to_role);
    execute format('grant insert on {schema}.audit, {schema}.archive to %I', to_role);
    execute format('grant execute on function {schema}.sweep(boolean, timestamptz, timestamptz, bigint, integer), '
                   '{schema}.take_events(boolean, timestamptz, bigint, integer), '
                   '{schema}.sweep_history(timestamptz, integer), {schema}.sweep_archive(timestamptz), '
                   '{schema}.sweep_inbox(timestamptz, timestamptz, integer), {schema}.arrive() to %I', to_role);
end
$$;

revoke execute on function {schema}.sweep(boolean, timestamptz, timestamptz, bigint, integer) from public;
revoke execute on function {schema}.take_events(boolean, timestamptz, bigint, integer) from public;
revoke execute on function {schema}.sweep_history(timestamptz, integer) from public;
revoke execute on function {schema}.sweep_archive(timestamptz) from public;
revoke execute on function {schema}.sweep_inbox(timestamptz, timestamptz, integer) from public;
revoke execute on function {schema}.arrive() from public;
