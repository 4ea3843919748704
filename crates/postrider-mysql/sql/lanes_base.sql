-- The settled batch of nothing that each lane begins with, so that retention knows every generation of lanes.
-- Lock: their rows. Index: none. Parameters: ?1 subscription, ?2 lanes, ?3 position, ?4 the time.
insert into postrider_settled_batch (subscription, lane, lanes, first_id, last_id, count, settled_at, settled_by)
with recursive number (n) as (select 0 union all select n + 1 from number where n + 1 < ?2)
select ?1, n, ?2, ?3 + 1, ?3, 0, ?4, '' from number
