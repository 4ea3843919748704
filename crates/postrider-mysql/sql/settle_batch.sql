-- Leaves the settled batch of a move. Lock: its row. Index: none.
-- Parameters: ?1 subscription, ?2 lane, ?3 from, ?4 to, ?5 count, ?6 the time, ?7 owner.
insert into postrider_settled_batch (subscription, lane, lanes, first_id, last_id, count, settled_at, settled_by)
select ?1, ?2, s.lanes, ?3 + 1, ?4, ?5, ?6, ?7 from postrider_subscription s where s.name = ?1
