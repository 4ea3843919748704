-- Puts what is open where its key is from now on, when nobody settles. Lock: the database's write lock.
-- Index: the primary key. Parameters: ?1 subscription, ?2 lanes.
update postrider_delivery set lane = lane_hash % ?2
where subscription = ?1 and (holds or state in ('waiting', 'running', 'retrying', 'dead')) and lane is not lane_hash % ?2
