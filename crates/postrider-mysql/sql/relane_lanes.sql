-- The lanes of a subscription, locked, so that they stay as they are while they are looked at. Lock: their rows.
-- Index: the primary key. Parameters: ?1 subscription.
select lane from postrider_lane where subscription = ?1 order by lane for update
