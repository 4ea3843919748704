-- Makes the lanes of a subscription, all at one position. Lock: their rows. Index: the primary key.
-- Parameters: ?1 subscription, ?2 lanes, ?3 position, ?4 epoch to go on from.
insert into postrider_lane (subscription, lane, position, lease_epoch)
with recursive number (n) as (select 0 union all select n + 1 from number where n + 1 < ?2)
select ?1, n, ?3, ?4 from number
