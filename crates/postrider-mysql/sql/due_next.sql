-- Whether a lane stands as its holder believes, and what else is to be known of its open deliveries: the time of this look, when the
-- next one's time comes, and whether any of them holds. Lock: none. Index: the primary key of lanes, delivery_next, delivery_key.
-- Parameters: ?1 subscription, ?2 lanes, ?3 lane, ?4 the time, ?5 epoch, ?6 owner, ?7 where the lease says that it stands.
select ?4 as now,
       exists (select 1 from postrider_lane l
               where l.subscription = ?1 and l.lane = ?3 and l.lease_epoch = ?5 and (l.lease_owner is null or l.lease_owner = ?6)
                 and l.position = ?7) as sound,
       (select d.next_at from postrider_delivery d force index (delivery_next)
        where d.subscription = ?1 and d.state = 'retrying' and d.next_at > ?4 and d.lane_hash % ?2 = ?3
        order by d.next_at limit 1) as next_at,
       exists (select 1 from postrider_delivery d force index (delivery_key)
               where d.subscription = ?1 and d.holds = true and d.lane_hash % ?2 = ?3) as holds
