-- Makes every lease of a subscription stale, when none is in force: who still holds an old one can't settle.
-- Lock: its lanes' rows. Index: the primary key. Parameters: ?1 subscription.
update postrider_lane
set lease_epoch = lease_epoch + 1, lease_owner = null, lease_until = null, lease_for = null, reading = 0
where subscription = ?1
