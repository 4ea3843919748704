-- Prolongs a lease. Lock: the database's write lock. Index: the primary key.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner, ?5 lease in microseconds, ?6 the time, ?7 how far the holder is
--   reading, ?8 where the lane must stand, ?9 why the destination is away, or null.
update postrider_lane
set lease_until = ?6 + ?5, lease_for = ?5, reading = max(reading, ?7),
    away = ?9, away_since = case when ?9 is not null then coalesce(away_since, ?6) end
where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4 and position = ?8
returning lease_until
