-- Deletes archived events that were recorded before a month. Lock: those rows. Index: archive_recorded.
-- Parameters: ?1 when the month began, ?2 limit.
delete from postrider_archive
where recorded_at < '1970-01-01 00:00:00' + interval ?1 microsecond
order by recorded_at limit ?2
