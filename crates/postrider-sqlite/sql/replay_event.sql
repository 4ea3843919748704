-- The id of an event, in the log or in the archive. Lock: none of its own. Index: event_id_is_unique, postrider_archive_event.
-- Parameters: ?1 event id.
select coalesce((select id from postrider_event where event_id = ?1),
                (select max(id) from postrider_archive where event_id = ?1)) as id
