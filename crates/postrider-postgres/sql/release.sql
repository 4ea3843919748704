-- Gives a lane back. Lock: the lane's row. A stale lease changes nothing.
-- It is free from now on, by the same clock as leases that run out: who was free longest is claimed next.
-- Parameters: $1 subscription, $2 lane, $3 epoch, $4 owner, $5 the time, if not the database's.
update {schema}.lane
set lease_owner = null, lease_until = coalesce($5::timestamptz, clock_timestamp()), reading = 0, claims_since_settle = 0,
    away = null, away_since = null
where subscription = $1 and lane = $2 and lease_epoch = $3 and lease_owner = $4
