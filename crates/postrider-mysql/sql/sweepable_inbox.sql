-- How many marks sweep_inbox.sql would forget. Lock: none. Index: inbox_handled, event_id_is_unique.
-- Parameters: ?1 cutoff, ?2 rows at most.
select count(*) from (
    select 1 from postrider_inbox i
    where i.handled_at <= ?1
      and not exists (
          select 1 from postrider_event e left join postrider_run r on r.id = postrider_run_of(e.id)
          where e.event_id = i.event_id
            and (exists (select 1 from postrider_lane l where r.seq is null or l.position < r.seq - (r.id - e.id))
                 or exists (select 1 from postrider_delivery d
                            where d.id = r.seq - (r.id - e.id) and d.state in ('waiting', 'running', 'retrying', 'dead'))))
    limit ?2) as old
