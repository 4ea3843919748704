-- Makes the doors of lanes. Lock: their rows. Index: the primary key. Parameters: ?1 subscription, ?2 lanes.
insert into postrider_lane_door (subscription, lane)
with recursive number (n) as (select 0 union all select n + 1 from number where n + 1 < ?2)
select ?1, n from number
