-- Locks the door of a lane, alone; no row while a handler's transaction, or another claim, has it. Lock: that row, which it
-- does not wait for. Index: the primary key. Parameters: ?1 subscription, ?2 lane.
select lane from postrider_lane_door where subscription = ?1 and lane = ?2 for update skip locked
