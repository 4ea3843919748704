-- The settled batches of events that are gone, but not the last one of a lane before the cutoff: the
-- horizon is read from it. Lock: none of its own. Index: settled_batch_time. Parameters: ?1 cutoff, ?2 horizon.
select b.id from postrider_settled_batch b
where b.subscription in (select s.name from postrider_subscription s)
  and b.last_id < coalesce((select r.seq - r.length + 1 from postrider_run r order by r.seq limit 1), ?2) and b.settled_at <= ?1
  and exists (
      select 1 from postrider_settled_batch n
      where n.subscription = b.subscription and n.lanes = b.lanes and n.lane = b.lane
        and n.settled_at between b.settled_at and ?1 and (n.settled_at > b.settled_at or n.id > b.id))
order by b.id limit 100000
