-- How many marks sweep_inbox.sql would forget. Lock: none. Index: postrider_inbox_handled, event_id_is_unique.
-- Parameters: ?1 cutoff, ?2 rows at most.
select count(*) from (
    select 1 from postrider_inbox i
    where i.handled_at <= ?1
      and not exists (
          select 1 from postrider_event e
          where e.event_id = i.event_id
            and (exists (select 1 from postrider_lane l where l.position < e.id)
                 or exists (select 1 from postrider_delivery d
                            where d.id = e.id and d.state in ('waiting', 'running', 'retrying', 'dead'))))
    limit ?2)
