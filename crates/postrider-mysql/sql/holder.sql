-- Somebody who holds a lane of a subscription. Lock: none of its own. Index: the primary key.
-- Parameters: ?1 subscription, ?2 the time.
select lease_owner from postrider_lane
where subscription = ?1 and lease_owner is not null and lease_until > ?2 and lease_until <= ?2 + lease_for + 1000000 limit 1
