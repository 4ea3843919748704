-- Says how many lanes a subscription is to have; a change that is under way keeps its common position.
-- Lock: the subscription's row. Index: the primary key. Parameters: ?1 subscription, ?2 lanes.
update postrider_subscription set lanes_next = ?2
where name = ?1 and coalesce(lanes_next, lanes) <> ?2
