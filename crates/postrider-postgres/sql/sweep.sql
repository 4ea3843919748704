-- One round of archive or prune: see the function. Lock: the turn of sweeps, the rows that go; for a new month of the
-- archive also its months. Index: event_pkey.
-- Parameters: $1 the time, if not the database's, $2 age in microseconds, $3 limit, $4 after this id, $5 whether to keep a copy in
--   the archive.
select swept.taken, swept.reached
from (select coalesce($1::timestamptz, clock_timestamp()) as now) as clock
cross join lateral {schema}.sweep($5, now - $2::bigint * interval '1 microsecond', now, $4, $3) as swept
