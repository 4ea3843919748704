-- Gives numbers to what was committed: see the procedure. Lock: the one row of postrider_numbering, for as long as the call takes.
-- Index: the primary keys. Parameters: ?1 events at most, ?2 whether to look everywhere.
call postrider_number(?1, ?2)
