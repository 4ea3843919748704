-- The events that retention may take: settled by every subscription, read by every lane, nothing open.
-- Lock: none of its own. Index: the primary key of the log, postrider_delivery_event.
-- Parameters: ?1 horizon, ?2 cutoff, ?3 limit.
select e.id from postrider_event e
where e.id <= ?1 and e.id <= (select min(position) from postrider_lane)
  and not exists (
      select 1 from postrider_delivery d
      where d.id = e.id and (d.state in ('waiting', 'running', 'retrying', 'dead') or d.last_attempt_at > ?2))
order by e.id limit ?3
