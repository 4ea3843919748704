-- Prolongs a lease. Lock: the lane's row. Index: the primary key.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner, ?5 lease in microseconds, ?6 the time, ?7 how far the holder is
--   reading, ?8 where the lane must stand.
update postrider_lane
set lease_until = ?6 + ?5, lease_for = ?5, reading = greatest(reading, ?7)
where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4 and position = ?8
