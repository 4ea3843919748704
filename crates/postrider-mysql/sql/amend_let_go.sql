-- Lets the next one of a key be found where a dead one is about to be discarded. Lock: the rows that change. Index: the primary key,
-- delivery_key, once a key. Parameters: ?1 subscription, ?2 a JSON array of numbers.
update (select (select f.id from postrider_delivery f force index (delivery_key)
                where f.subscription = ?1 and f.holds = true and f.lane_hash = k.lane_hash and f.ordering_key = k.ordering_key
                order by f.id limit 1) as id
        from (select distinct g.lane_hash, g.ordering_key
              from json_table(?2, '$[*]' columns (id bigint path '$')) c
              straight_join postrider_delivery g on g.subscription = ?1 and g.id = c.id and g.state = 'dead') as k) as next
straight_join postrider_delivery d on d.subscription = ?1 and d.id = next.id
set d.look_at = 0
where d.look_at is null and d.state <> 'dead'
