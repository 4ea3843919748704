-- Deletes archived events that were recorded before a month. Lock: the database's write lock. Index: postrider_archive_recorded.
-- Parameters: ?1 when the month began, ?2 limit.
delete from postrider_archive where id in (
    select id from postrider_archive where recorded_at < ?1 order by recorded_at limit ?2)
