-- Whether a lane stands as its holder believes, and what else is to be known of its open deliveries: the time of this look, when the
-- next one's time comes, and whether any of them holds. Lock: none. Index: the primary key of lanes, delivery_look, delivery_lane.
-- Parameters: ?1 subscription, ?2 lane, ?3 the time, ?4 epoch, ?5 owner, ?6 where the lease says that it stands.
select ?3 as now,
       exists (select 1 from postrider_lane l
               where l.subscription = ?1 and l.lane = ?2 and l.lease_epoch = ?4 and (l.lease_owner is null or l.lease_owner = ?5)
                 and l.position = ?6) as sound,
       (select d.look_at from postrider_delivery d force index (delivery_look)
        where d.subscription = ?1 and d.lane = ?2 and d.look_at > ?3
        order by d.look_at limit 1) as next_at,
       exists (select 1 from postrider_delivery d force index (delivery_lane)
               where d.subscription = ?1 and d.lane = ?2 and d.holds = true) as holds
