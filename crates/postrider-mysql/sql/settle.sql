-- Settles a batch: see the procedure. Lock: the lane's row and those of the deliveries, for as long as the call takes.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner, ?5 from, ?6 to, ?7 how far is being read, ?8 count, ?9 the time, or null
--   for the database's, ?10 a JSON array of changes, or null, ?11 and ?12 the number and the mark of the witness, or null, ?13 whether
--   changes are written one by one, ?14 a JSON array of the events whose effects must be marked in the inbox, or null,
--   ?15 a JSON array of the running ones that simply succeeded, or null.
call postrider_settle_running(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
