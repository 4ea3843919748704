-- Forgets what was handled before a time, but not while its event is still to be settled somewhere.
-- Lock: the database's write lock. Index: postrider_inbox_handled, event_id_is_unique.
-- Parameters: ?1 cutoff, ?2 limit.
delete from postrider_inbox where (consumer, event_id) in (
    select i.consumer, i.event_id from postrider_inbox i
    where i.handled_at <= ?1
      and not exists (
          select 1 from postrider_event e
          where e.event_id = i.event_id
            and (exists (select 1 from postrider_lane l where l.position < e.id)
                 or exists (select 1 from postrider_delivery d
                            where d.id = e.id and d.state in ('waiting', 'running', 'retrying', 'dead'))))
    order by i.handled_at limit ?2)
returning consumer, handled_at
