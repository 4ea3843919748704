-- Which of some keys are held up, and from which event on. Lock: none. Index: postrider_delivery_key, once a key.
-- Parameters: ?1 subscription, ?2 a JSON array of keys.
select d.key, min(d.id) as id
from json_each(?2) k cross join postrider_delivery d indexed by postrider_delivery_key
where d.subscription = ?1 and d.key = k.value and d.holds
group by d.key
