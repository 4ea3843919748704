-- The number of an event, in the log or in the archive. Lock: none of its own. Index: event_id_is_unique, archive_event.
-- Parameters: ?1 event id.
select coalesce((select r.seq - (r.id - e.id) from postrider_event e join postrider_run r on r.id = postrider_run_of(e.id) where e.event_id = ?1),
                (select max(id) from postrider_archive where event_id = ?1)) as id
