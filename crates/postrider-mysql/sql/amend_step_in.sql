-- Takes those out of the index of looks that dead deliveries are about to be requeued in front of. Lock: the rows that change.
-- Index: the primary key, delivery_key. The trigger sees that there is one in front.
-- Parameters: ?1 subscription, ?2 a JSON array of numbers.
update (select distinct (select f.id from postrider_delivery f force index (delivery_key)
                         where f.subscription = ?1 and f.holds = true and f.lane_hash = g.lane_hash and f.ordering_key = g.ordering_key
                           and f.id > g.id
                         order by f.id limit 1) as id
        from json_table(?2, '$[*]' columns (id bigint path '$')) c
        straight_join postrider_delivery g on g.subscription = ?1 and g.id = c.id and g.state = 'dead') as next
straight_join postrider_delivery d on d.subscription = ?1 and d.id = next.id
set d.look_at = null
where d.look_at is not null
