-- Gives a lane back; a stale lease finds no row. Lock: the database's write lock. Index: the primary key.
-- It is free from now on, by the same clock as leases that run out: who was free longest is claimed next.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner, ?5 the time, if not SQLite's.
update postrider_lane
set lease_owner = null, lease_for = null,
    lease_until = coalesce(?5, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000), claims_since_settle = 0, reading = 0,
    away = null, away_since = null
where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4
