-- Moves a lane, under its lease and from where it must stand; otherwise no row. The first statement of a settle.
-- Lock: the lane's row. Index: the primary key. Changed in place, so it stays flat while somebody holds a transaction open.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner, ?5 from, ?6 to, ?7 how far is being read, ?8 the time.
update postrider_lane
set position = ?6, reading = greatest(?6, ?7), claims_since_settle = 1, settled_at = ?8
where subscription = ?1 and lane = ?2 and lease_epoch = ?3 and lease_owner = ?4 and position = ?5
