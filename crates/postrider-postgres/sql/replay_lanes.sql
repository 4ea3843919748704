-- Sets the lanes of a subscription back to an id, and fences them. Lock: the lanes' rows. Index: lane_pkey.
-- Only the frontier is lowered; the snapshot and its bound stay. What the position says stays true that way: all up to the
-- frontier that the snapshot shows has been read, and what it does not show began before the bound and is found, late. With
-- the snapshot of now, late events that have committed since the last read would count as read, and be lost. A lane that has
-- not got so far stays where it is. While it is in the middle of many late rows, those up to the new frontier are read on.
-- Parameters: $1 subscription, $2 the id.
update {schema}.lane
set position = case when frontier > $2::bigint
                    then regexp_replace(position, '^(-?[0-9]+)/[0-9]+/', '\1/' || $2::bigint::text || '/') else position end,
    frontier = least(frontier, $2::bigint), reading = 0, claims_since_settle = 0,
    lease_epoch = lease_epoch + 1, lease_owner = null, lease_until = null
where subscription = $1::text
