-- What was handled before a time, but not while its event is still to be settled somewhere. Lock: those rows, passing over what
-- somebody else has. Index: inbox_handled, event_id_is_unique. An event without a number is still to be settled everywhere.
-- Parameters: ?1 cutoff, ?2 limit.
select i.consumer, i.event_id, i.handled_at from postrider_inbox i
where i.handled_at <= ?1
  and not exists (
      select 1 from postrider_event e left join postrider_run r on r.id = postrider_run_of(e.id)
      where e.event_id = i.event_id
        and (exists (select 1 from postrider_lane l where r.seq is null or l.position < r.seq - (r.id - e.id))
             or exists (select 1 from postrider_delivery d
                        where d.id = r.seq - (r.id - e.id) and d.state in ('waiting', 'running', 'retrying', 'dead'))))
order by i.handled_at limit ?2
for update skip locked
