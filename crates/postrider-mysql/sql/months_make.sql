-- Makes months of the archive: see the procedure. Lock: the archive, for a moment, unless somebody reads it for longer than a second.
-- Index: none. Parameters: ?1 the time.
call postrider_archive_months(?1)
