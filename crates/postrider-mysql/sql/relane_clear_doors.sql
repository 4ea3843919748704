-- Takes the doors of the old lanes away. Lock: their rows. Index: the primary key. Parameters: ?1 subscription.
delete from postrider_lane_door where subscription = ?1
