-- Locks the doors of a subscription's lanes, as far as no handler's transaction has them. Lock: those rows. Index: the primary
-- key. Parameters: ?1 subscription.
select lane from postrider_lane_door where subscription = ?1 for update skip locked
