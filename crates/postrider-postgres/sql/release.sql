-- Gives a lane back. Lock: the lane's row. A stale lease changes nothing.
-- Parameters: $1 subscription, $2 lane, $3 epoch, $4 owner.
update {schema}.lane
set lease_owner = null, lease_until = null, reading = 0, claims_since_settle = 0
where subscription = $1 and lane = $2 and lease_epoch = $3 and lease_owner = $4
