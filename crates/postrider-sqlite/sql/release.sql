-- Gives a lane back; a stale lease finds no row. Lock: the database's write lock. Index: the primary key.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner.
update postrider_lane
set lease_owner = null, lease_until = null, lease_for = null, claims_since_settle = 0, reading = 0
where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4
