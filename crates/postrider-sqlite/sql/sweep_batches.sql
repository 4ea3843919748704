-- Deletes the settled batches of events that are gone, but not the last one of a lane before the cutoff: the
-- horizon is read from it. Lock: the database's write lock. Index: postrider_settled_batch_time.
-- Parameters: ?1 cutoff, ?2 horizon.
delete from postrider_settled_batch as b
where b.subscription in (select name from postrider_subscription) and b.last_id < coalesce((select min(id) from postrider_event), ?2) and b.settled_at <= ?1
  and exists (
      select 1 from postrider_settled_batch n
      where n.subscription = b.subscription and n.lanes = b.lanes and n.lane = b.lane
        and n.settled_at between b.settled_at and ?1 and (n.settled_at > b.settled_at or n.id > b.id))
