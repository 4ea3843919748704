-- Ends a change of lanes. Lock: the subscription's row. Index: the primary key. Parameters: ?1 subscription.
update postrider_subscription set lanes = lanes_next, lanes_next = null, target = null where name = ?1
