-- Takes those out of the index of looks that dead deliveries are about to be requeued in front of. Lock: the rows that change.
-- Index: delivery_next, over the dead ones alone, delivery_key. The trigger sees that there is one in front.
-- Parameters: ?1 subscription, ?2 the event id, or null for all.
update (select distinct (select f.id from postrider_delivery f force index (delivery_key)
                         where f.subscription = ?1 and f.holds = true and f.lane_hash = g.lane_hash and f.ordering_key = g.ordering_key
                           and f.id > g.id
                         order by f.id limit 1) as id
        from postrider_delivery g force index (delivery_next)
        where g.subscription = ?1 and g.state = 'dead' and (?2 is null or g.event_id = ?2)) as next
straight_join postrider_delivery d on d.subscription = ?1 and d.id = next.id
set d.look_at = null
where d.look_at is not null
