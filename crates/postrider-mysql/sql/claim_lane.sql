-- A lane's row, locked. Lock: that row; only settles, extensions and claims have it, for a moment. Index: the primary key.
-- Parameters: ?1 subscription, ?2 lane.
select lane, lease_epoch, lease_until, position, claims_since_settle
from postrider_lane where subscription = ?1 and lane = ?2 for update
