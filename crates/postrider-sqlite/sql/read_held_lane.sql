-- From which event on a lane under strict order is held up. Lock: none. Index: postrider_delivery_lane.
-- Parameters: ?1 subscription, ?2 lane.
select min(id) as id from postrider_delivery indexed by postrider_delivery_lane
where subscription = ?1 and lane = ?2 and holds
