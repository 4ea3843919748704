-- Whether a lane is held under a lease: asked when its door is locked. Lock: none of its own; under REPEATABLE READ this is the
-- transaction's first look, so it sees every claim that was before the door. Index: the primary key.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner.
select 1 from postrider_lane where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4
