-- Drops a month of the archive: see the function. Lock: the turn of sweeps; the archive, exclusively, for a moment.
-- Parameters: $1 the time, if not the database's, $2 age in microseconds.
select swept.taken, swept.more from {schema}.sweep_archive(
    coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 microsecond') as swept
