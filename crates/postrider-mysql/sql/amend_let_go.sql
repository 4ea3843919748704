-- Lets the next one of a key be found where a dead one is about to be discarded. Lock: the rows that change. Index: delivery_next, over the
-- dead ones alone, delivery_key. Parameters: ?1 subscription, ?2 the event id, or null for all.
update (select (select f.id from postrider_delivery f force index (delivery_key)
                where f.subscription = ?1 and f.holds = true and f.lane_hash = k.lane_hash and f.ordering_key = k.ordering_key
                order by f.id limit 1) as id
        from (select distinct g.lane_hash, g.ordering_key from postrider_delivery g force index (delivery_next)
              where g.subscription = ?1 and g.state = 'dead' and (?2 is null or g.event_id = ?2)) as k) as next
straight_join postrider_delivery d on d.subscription = ?1 and d.id = next.id
set d.look_at = 0
where d.look_at is null and d.state <> 'dead'
