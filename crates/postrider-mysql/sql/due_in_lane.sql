-- Strict order: the open rows of the lane from its first on, up to one whose time has not come, that is in hand, or that is dead and holds.
-- Index: delivery_lane, as many rows as are wanted.
select k.id, k.event_id, k.state, k.attempts, k.first_failed_at, k.error_code, k.past,
       max(k.state = 'dead' or (k.state = 'retrying' and k.next_at > ?4) or (k.state = 'running' and k.epoch <=> ?5))
           over (order by k.id) as blocked
from (select * from postrider_delivery force index (delivery_lane)
      where subscription = ?1 and lane = ?2 and holds = true order by id limit ?3) k
