-- Strict order: the open rows of the lane from its first on, up to one whose time has not come, that is in hand, or that is dead and holds.
-- Index: postrider_delivery_lane, as many rows as are wanted.
chosen as materialized (
    select * from (
        select d.id, d.event_id, d.state, d.attempts, d.first_failed_at, d.error_code, d.past,
               max(d.state = 'dead' or (d.state = 'retrying' and d.next_at > ?4) or (d.state = 'running' and d.epoch is ?5))
                   over (order by d.id) as blocked
        from (select * from postrider_delivery k indexed by postrider_delivery_lane
              where k.subscription = ?1 and k.lane = ?2 and k.holds order by k.id limit ?3) d)
    where not blocked
)
