-- The position of the lane of a subscription that is furthest behind; null if there is none. Lock: none. Index: the primary key.
-- Parameters: ?1 subscription.
select min(position) from postrider_lane where subscription = ?1
