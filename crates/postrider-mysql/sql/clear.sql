-- Clears arrivals away that have their numbers: see the procedure. Lock: the one row of postrider_clearing, for as long as the call
-- takes. Index: the primary keys.
call postrider_clear()
