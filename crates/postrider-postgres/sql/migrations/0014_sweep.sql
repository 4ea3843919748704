-- Event ids that may leave the log, as before, on plans that stop at the limit. While the statistics know nothing of the table,
-- PostgreSQL 18 joins all that may leave with `recent` and sorts it, in every round: a log of a million delivered events would be
-- read a thousand times. A filter is not joined, and without sorts the index gives the order.
-- Locks: none. Indexes: event_pkey, delivery_event, settled_batch_time.
create or replace function {schema}.sweepable(cutoff timestamptz, after bigint, most integer) returns setof bigint
language plpgsql stable set enable_sort = off as $$
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
          where d.id = e.id and (d.state in ('waiting', 'running', 'retrying', 'dead') or d.last_attempt_at > cutoff))
      and e.id not in (select recent.id from recent)
    order by e.id limit most;
end
$$;
