-- Claims a lane whose row and door are locked by now. Lock: the lane's row. Index: the primary key.
-- A lease that lasts longer from now than it was given for is void: the clock went back. The time was read after the row was
-- locked: with one read earlier, a faster claim's lease would look like one from the future.
-- Parameters: ?1 subscription, ?2 lane, ?3 owner, ?4 lease in microseconds, ?5 the time.
update postrider_lane
set lease_owner = ?3, lease_for = ?4, lease_until = ?5 + ?4, lease_epoch = lease_epoch + 1,
    claims_since_settle = claims_since_settle + 1, reading = 0, away = null, away_since = null
where subscription = ?1 and lane = ?2
  and (lease_owner is null or lease_until <= ?5 or lease_until > ?5 + lease_for + 1000000)
