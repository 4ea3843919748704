-- From which event on a lane under strict order is held up. Lock: none. Index: postrider_delivery_key.
-- Parameters: ?1 subscription, ?2 lanes, ?3 lane.
select min(id) as id from postrider_delivery indexed by postrider_delivery_key
where subscription = ?1 and lane_hash % ?2 = ?3 and holds
