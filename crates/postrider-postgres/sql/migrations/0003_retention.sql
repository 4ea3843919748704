-- Retention, the view of states, the arrival in a cluster, and the grants of the two roles.

create index settled_batch_time on {schema}.settled_batch (subscription, settled_at);

-- How far retention has got in the log: of what it took, the highest id and the latest time. From there on the log is whole.
create table {schema}.swept (
    one         boolean primary key default true check (one),
    id          bigint not null,
    recorded_at timestamptz not null
);

-- When the last mark was made that retention took out of a consumer's inbox. What was recorded after that is still known.
create table {schema}.forgotten (
    consumer   text primary key,
    handled_at timestamptz not null
);

-- Up to which id a subscription had settled everything that is neither late nor open by a time: the smallest
-- over the lanes it had then. Each generation of lanes begins with a row a lane, so none is missed.
create function {schema}.horizon(wanted text, cutoff timestamptz) returns bigint language plpgsql stable as $$
declare
    generation integer;
    lowest     bigint;
    reached    bigint;
begin
    select b.lanes into generation from {schema}.settled_batch b
        where b.subscription = wanted and b.settled_at <= cutoff order by b.settled_at desc limit 1;
    if generation is null then
        return (select start_frontier from {schema}.subscription where name = wanted);
    end if;
    for n in 0 .. generation - 1 loop
        select b.last_id into reached from {schema}.settled_batch b
            where b.subscription = wanted and b.settled_at <= cutoff and b.lanes = generation and b.lane = n
            order by b.settled_at desc, b.last_id desc limit 1;
        lowest := least(lowest, coalesce(reached, 0));
    end loop;
    return lowest;
end
$$;

-- One at a time: takes the lock of sweeps for this transaction, or says that another sweep or a replay has it.
create function {schema}.sweep_alone() returns void language plpgsql volatile as $$
begin
    if not pg_try_advisory_xact_lock(hashtextextended('postrider sweep {schema}', 0)) then
        raise exception 'postrider: another sweep, or a replay, is at work' using errcode = 'lock_not_available';
    end if;
end
$$;

-- What retention may take after an id, by id: settled by every subscription by `cutoff`, read by every lane, nothing open.
-- Below a frontier there may be late events that nobody has seen: only what a lane's snapshot shows counts as read. What is older
-- than every lane's snapshot is visible in all of them, so that most rows are judged without looking at the lanes.
create function {schema}.sweepable(cutoff timestamptz, after bigint, most integer) returns setof bigint
language plpgsql stable as $$
declare
    highest bigint := (select min({schema}.horizon(name, cutoff)) from {schema}.subscription);
    here    bigint := {schema}.this_system();
    ground  bigint := coalesce((select floor from {schema}.cluster where system = here), 0);
    lowest  bigint := (select min(l.frontier) from {schema}.lane l);
    oldest  xid8   := (select pg_snapshot_xmin(l.snapshot) from {schema}.lane l order by 1 limit 1);
begin
    return query
    with recent as materialized (
        select distinct unnest(b.late) as id from {schema}.subscription s
        join {schema}.settled_batch b on b.subscription = s.name and b.settled_at > cutoff and b.late is not null
    )
    select e.id from {schema}.event e
    where e.id > after and e.id <= highest
      and ((e.id <= lowest and e.tx_id < oldest)
           or not exists (
              select from {schema}.lane l
              where not (e.id <= l.frontier
                         and ((l.system = here and e.id <= ground) or pg_visible_in_snapshot(e.tx_id, l.snapshot)))))
      and not exists (
          select from {schema}.delivery d
          where d.id = e.id and (d.state in ('waiting', 'retrying', 'dead') or d.last_attempt_at > cutoff))
      and not exists (select from recent where recent.id = e.id)
    order by e.id limit most;
end
$$;

-- Whether a month is part of the archive: one that somebody has detached is theirs.
create function {schema}.has_month(part text) returns boolean language sql stable as $$
    select exists (select from pg_inherits i
                   where i.inhrelid = to_regclass('{schema}.' || part) and i.inhparent = '{schema}.archive'::regclass)
$$;

-- Makes the months of the archive that these events need, and counts them in. A month is attached, not made as a part at once:
-- so the archive is locked against other changes of its months only, and nobody who reads it waits.
create function {schema}.archive_months(ids bigint[]) returns void language plpgsql volatile as $$
declare
    wanted record;
    part   text;
begin
    for wanted in
        select date_trunc('month', e.recorded_at at time zone 'UTC')::date as month, count(*) as events
        from {schema}.event e where e.id = any (ids) group by 1
    loop
        part := 'archive_' || to_char(wanted.month, 'YYYY_MM');
        if not {schema}.has_month(part) then
            execute format('create table {schema}.%I (like {schema}.archive including all)', part);
            execute format('alter table {schema}.archive attach partition {schema}.%I for values from (%L) to (%L)', part,
                           to_char(wanted.month, 'YYYY-MM-DD') || ' 00:00:00+00',
                           to_char(wanted.month + interval '1 month', 'YYYY-MM-DD') || ' 00:00:00+00');
        end if;
        insert into {schema}.archive_month as m (month, events) values (wanted.month, wanted.events)
            on conflict (month) do update set events = m.events + excluded.events;
    end loop;
end
$$;

-- Takes events out of the log, with their deliveries, and notes how far retention has got.
create function {schema}.delete_events(ids bigint[]) returns void language plpgsql volatile as $$
begin
    perform set_config('postrider.sweeping', 'on', true);
    with gone as (
        delete from {schema}.event where id = any (ids) returning id, recorded_at
    )
    insert into {schema}.swept as w (id, recorded_at) select max(gone.id), max(gone.recorded_at) from gone
    on conflict (one) do update
        set id = greatest(w.id, excluded.id), recorded_at = greatest(w.recorded_at, excluded.recorded_at);
    perform set_config('postrider.sweeping', '', true);
    delete from {schema}.delivery where id = any (ids);
end
$$;

-- One round of retention: archives or prunes up to `most` events after an id. Runs as the owner, because nobody else may delete
-- events; one at a time, by an advisory lock.
create function {schema}.sweep(keep boolean, cutoff timestamptz, at timestamptz, after bigint, most integer,
                               out taken bigint, out reached bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    ids bigint[];
begin
    perform {schema}.sweep_alone();
    select array_agg(id), count(*), max(id) into ids, taken, reached from {schema}.sweepable(cutoff, after, most) as id;
    if ids is null then
        return;
    end if;
    if keep then
        perform {schema}.archive_months(ids);
        insert into {schema}.archive
        select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, max_attempts,
               occurred_at, recorded_at, headers, payload, content_type, content, at
        from {schema}.event where id = any (ids);
    end if;
    perform {schema}.delete_events(ids);
end
$$;

-- Takes up to `most` events out of the log and gives them to the caller, who puts them where they belong in the same transaction:
-- by its own rights, not by the owner's. `filed` says that this is the archive. A caller that drops them has pruned them, which
-- it may do anyway.
create function {schema}.take_events(filed boolean, cutoff timestamptz, after bigint, most integer) returns setof {schema}.event
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    ids bigint[];
begin
    perform {schema}.sweep_alone();
    select array_agg(id) into ids from {schema}.sweepable(cutoff, after, most) as id;
    if ids is null then
        return;
    end if;
    if filed then
        perform {schema}.archive_months(ids);
    end if;
    return query select * from {schema}.event where id = any (ids) order by id;
    perform {schema}.delete_events(ids);
end
$$;

-- Forgets up to `most` settled batches of events that are gone, but not the last one of a lane by `cutoff`: the horizon is read
-- from it.
create function {schema}.sweep_history(cutoff timestamptz, most integer) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    lowest bigint := coalesce((select id from {schema}.event order by id limit 1),
                              (select min({schema}.horizon(name, cutoff)) from {schema}.subscription));
    taken  bigint;
begin
    perform {schema}.sweep_alone();
    delete from {schema}.settled_batch where ctid = any (array(
        select b.ctid from {schema}.subscription s join {schema}.settled_batch b on b.subscription = s.name
        where b.last_id < lowest and b.settled_at <= cutoff
          and exists (select from {schema}.settled_batch n
                      where n.subscription = b.subscription and n.lanes = b.lanes and n.lane = b.lane
                        and n.settled_at <= cutoff and n.settled_at > b.settled_at)
        limit most));
    get diagnostics taken = row_count;
    return taken;
end
$$;

-- Drops the first month of the archive that ended by `cutoff`, and says whether there is another. Readers of the archive are
-- locked out for as long as that takes; publishers and relays never look at it. A reader that is at it is waited for no longer than
-- others may be kept waiting behind this: then it fails, and is tried again later.
create function {schema}.sweep_archive(cutoff timestamptz, out taken bigint, out more boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $$
declare
    first date := date_trunc('month', cutoff at time zone 'UTC')::date;
    gone  date;
begin
    perform {schema}.sweep_alone();
    select m.month into gone from {schema}.archive_month m where m.month < first order by m.month limit 1;
    if gone is null then
        taken := 0;
        more := false;
        return;
    end if;
    if {schema}.has_month('archive_' || to_char(gone, 'YYYY_MM')) then
        execute format('drop table {schema}.%I', 'archive_' || to_char(gone, 'YYYY_MM'));
    end if;
    delete from {schema}.archive_month m where m.month = gone returning m.events into taken;
    taken := coalesce(taken, 0);
    more := exists (select from {schema}.archive_month m where m.month < first);
end
$$;

-- The marks in inboxes that may be forgotten: made before `cutoff`, and their event not still to be settled somewhere.
create function {schema}.forgettable(cutoff timestamptz, since timestamptz, most integer)
returns table (consumer text, event_id uuid) language plpgsql stable as $$
declare
    here   bigint := {schema}.this_system();
    ground bigint := coalesce((select floor from {schema}.cluster where system = here), 0);
begin
    return query
    select i.consumer, i.event_id from {schema}.inbox i
    where i.handled_at >= since and i.handled_at <= cutoff
      and not exists (
          select from {schema}.event e
          where e.event_id = i.event_id
            and (exists (select from {schema}.delivery d
                         where d.id = e.id and d.state in ('waiting', 'retrying', 'dead'))
                 or exists (select from {schema}.lane l
                            where not (e.id <= l.frontier
                                       and ((l.system = here and e.id <= ground)
                                            or pg_visible_in_snapshot(e.tx_id, l.snapshot))))))
    order by i.handled_at limit most;
end
$$;

-- Forgets up to `most` of them, beginning with those of a time.
create function {schema}.sweep_inbox(cutoff timestamptz, since timestamptz, most integer, out taken bigint, out reached timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    -- A replay that is under way has just looked at what is known.
    if not pg_try_advisory_xact_lock_shared(hashtextextended('postrider inbox {schema}', 0)) then
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

