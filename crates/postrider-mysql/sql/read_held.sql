-- Which keys of some hashes are held up, and from which event on. Lock: none. Index: delivery_key, once a hash.
-- Parameters: ?1 subscription, ?2 a JSON array of hashes.
select d.ordering_key, min(d.id) as id
from json_table(?2, '$[*]' columns (hash bigint path '$')) k
straight_join postrider_delivery d force index (delivery_key)
    on d.subscription = ?1 and d.holds = true and d.lane_hash = k.hash
group by d.ordering_key
