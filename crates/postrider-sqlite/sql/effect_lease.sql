-- Whether a lane is held under a lease. Lock: none of its own; the transaction has the database's write lock, so nobody can
-- claim the lane while it is open. Index: the primary key. Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner.
select 1 from postrider_lane where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4
