-- Gives a lane back; a stale lease finds no row. Lock: the lane's row. Index: the primary key.
-- It is free from now on, by the same clock as leases that run out: who was free longest is claimed next.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner, ?5 the time, if not the database's.
update postrider_lane
set lease_owner = null, lease_for = null,
    lease_until = coalesce(?5, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))), claims_since_settle = 0, reading = 0,
    away = null, away_since = null
where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4
