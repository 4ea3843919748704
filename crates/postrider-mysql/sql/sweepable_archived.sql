-- How many archived events sweep_archived.sql would delete. Lock: none. Index: archive_recorded.
-- Parameters: ?1 when the month began, ?2 rows at most.
select count(*) from (
    select 1 from postrider_archive where recorded_at < '1970-01-01 00:00:00' + interval ?1 microsecond limit ?2) as old
