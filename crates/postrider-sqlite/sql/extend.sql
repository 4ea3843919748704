-- Prolongs a lease. Lock: the database's write lock. Index: the primary key.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner, ?5 lease in microseconds, ?6 the time, if not the
--   database's, ?7 how far the holder is reading, ?8 where the lane must stand.
update postrider_lane
set lease_until = coalesce(?6, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000) + ?5,
    lease_for = ?5, reading = max(reading, ?7)
where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4 and position = ?8
returning lease_until,
          exists (select 1 from postrider_delivery d indexed by postrider_delivery_key where d.subscription = ?1 and d.holds) as open,
          coalesce((select s.paused or (s.lanes_next is not null and (s.target is null or s.target = position))
                    from postrider_subscription s where s.name = ?1), 1) as recalled
