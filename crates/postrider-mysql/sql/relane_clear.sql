-- Takes the old lanes away once all of them stand at the common position. Lock: their rows. Index: the primary key.
-- Parameters: ?1 subscription.
delete from postrider_lane where subscription = ?1
