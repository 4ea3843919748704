-- Puts what is open where its key is from now on, when nobody settles. Lock: those rows. Index: the primary key.
-- Parameters: ?1 subscription, ?2 lanes.
update postrider_delivery set lane = lane_hash % ?2
where subscription = ?1 and (holds or state in ('waiting', 'running', 'retrying', 'dead')) and not lane <=> lane_hash % ?2
