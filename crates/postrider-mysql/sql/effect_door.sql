-- Keeps a lane from being claimed while a handler's transaction is open. Lock: the lane's door, shared: a claim that is under
-- way is waited for. Index: the primary key. Parameters: ?1 subscription, ?2 lane.
select lane from postrider_lane_door where subscription = ?1 and lane = ?2 lock in share mode
