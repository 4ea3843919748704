-- When the first event was recorded that some lane of a subscription has not passed, whatever its filter. Lock: none.
-- Index: the primary keys of the lanes and, for one row, of the log. Parameters: ?1 subscription.
select recorded_at from postrider_event
where id > (select min(position) from postrider_lane where subscription = ?1) order by id limit 1
