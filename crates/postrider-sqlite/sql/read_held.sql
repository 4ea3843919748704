-- Which of some keys are held up, and from which event on. Lock: none. Index: postrider_delivery_key, its first entry of each key.
-- Parameters: ?1 subscription, ?2 a JSON array of keys.
select key, id from (
    select k.value as key, (select d.id from postrider_delivery d indexed by postrider_delivery_key
                            where d.subscription = ?1 and d.key = k.value and d.holds order by d.id limit 1) as id
    from json_each(?2) k)
where id is not null
