-- Prolongs a lease: see the procedure. Lock: the lane's row, for as long as the call takes.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 owner, ?5 where the lane must stand, ?6 how far the holder is reading, ?7 lease in
--   microseconds, ?8 the time, or null for the database's, ?9 why the destination is away, or null.
call postrider_extend_away(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
