-- Which of some keys are held up, and from which event on. Lock: none. Index: delivery_key, its first entry of each key.
-- Parameters: ?1 subscription, ?2 a JSON array of hashes and keys in hexadecimal.
select k.place, k.id
from (select c.place, (select d.id from postrider_delivery d force index (delivery_key)
                       where d.subscription = ?1 and d.holds = true and d.lane_hash = c.hash and d.ordering_key = unhex(c.ordering_key)
                       order by d.id limit 1) as id
      from json_table(?2, '$[*]' columns (place for ordinality, hash bigint path '$[0]', ordering_key text path '$[1]')) c) k
where k.id is not null
