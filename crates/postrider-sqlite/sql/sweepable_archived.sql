-- How many archived events sweep_archived.sql would delete. Lock: none. Index: postrider_archive_recorded.
-- Parameters: ?1 when the month began, ?2 rows at most.
select count(*) from (select 1 from postrider_archive where recorded_at < ?1 limit ?2)
