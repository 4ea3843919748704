-- One round of archive or prune: see the function. Parameters: $1 the time, if not the database's, $2 age in
-- microseconds, $3 limit, $4 whether to keep a copy in the archive.
select {schema}.sweep($4, now - $2::bigint * interval '1 microsecond', now, $3)
from (select coalesce($1::timestamptz, clock_timestamp()) as now) as clock
