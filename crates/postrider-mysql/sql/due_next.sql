-- What else is to be known of a lane's open deliveries: the time of this look, when the next one's time comes, and whether
-- any of them holds. Lock: none. Index: delivery_next, delivery_key.
-- Parameters: ?1 subscription, ?2 lanes, ?3 lane, ?4 the time.
select ?4 as now,
       (select d.next_at from postrider_delivery d force index (delivery_next)
        where d.subscription = ?1 and d.state = 'retrying' and d.next_at > ?4 and d.lane_hash % ?2 = ?3
        order by d.next_at limit 1) as next_at,
       exists (select 1 from postrider_delivery d force index (delivery_key)
               where d.subscription = ?1 and d.holds = true and d.lane_hash % ?2 = ?3) as holds
