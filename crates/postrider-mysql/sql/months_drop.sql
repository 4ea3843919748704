-- Drops the first month of the archive if it ended by a time: see the procedure. Lock: the archive, for a moment, unless somebody
-- reads it for longer than a second. Index: that month's smallest, to count. Parameters: ?1 the time.
call postrider_archive_drop(?1)
