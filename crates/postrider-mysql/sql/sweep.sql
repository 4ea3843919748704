-- The events that retention may take: settled by every subscription, read by every lane, nothing open. A number without an event
-- is of an insert that was ignored. Lock: none of its own. Index: the primary keys of the log, delivery_event.
-- Parameters: ?1 horizon, ?2 cutoff, ?3 limit.
select n.seq, n.id from postrider_numbered n
where n.seq <= ?1 and n.seq <= (select min(l.position) from postrider_lane l)
  and not exists (
      select 1 from postrider_delivery d
      where d.id = n.seq and (d.state in ('waiting', 'retrying', 'dead') or d.last_attempt_at > ?2))
order by n.seq limit ?3
