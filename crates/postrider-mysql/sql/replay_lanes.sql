-- Sets the lanes of a subscription back to a number, and makes every lease of them stale. A lane that has not got so far stays.
-- Lock: their rows. Index: the primary key. Parameters: ?1 subscription, ?2 the number.
update postrider_lane
set position = least(position, ?2), reading = 0, claims_since_settle = 0, lease_epoch = lease_epoch + 1, lease_owner = null,
    lease_until = null, lease_for = null
where subscription = ?1
