-- From which event on a lane under strict order is held up. Lock: none. Index: delivery_key.
-- Parameters: ?1 subscription, ?2 lanes, ?3 lane.
select min(id) as id from postrider_delivery force index (delivery_key)
where subscription = ?1 and holds = true and lane_hash % ?2 = ?3
