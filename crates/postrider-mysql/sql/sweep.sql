-- The events that retention may take: settled by every subscription, read by every lane, nothing open. They come in the order of the
-- runs. Lock: none of its own. Index: the primary keys, delivery_event; runs are no longer than 10,000.
-- Parameters: ?1 horizon, ?2 cutoff, ?3 limit.
select r.seq - (r.id - e.id) as seq, e.id
from postrider_run r force index (primary) straight_join postrider_event e on e.id between r.id - r.length + 1 and r.id
where r.seq < ?1 + 10000 and r.seq - (r.id - e.id) <= ?1
  and r.seq - (r.id - e.id) <= (select min(l.position) from postrider_lane l)
  and not exists (
      select 1 from postrider_delivery d
      where d.id = r.seq - (r.id - e.id) and (d.state in ('waiting', 'running', 'retrying', 'dead') or d.last_attempt_at > ?2))
limit ?3
