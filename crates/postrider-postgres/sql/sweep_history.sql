-- One round of forgetting settled batches of events that are gone: see the function. Lock: the turn of sweeps, the rows
-- that go. Index: settled_batch_time. Parameters: $1 the time, if not the database's, $2 age in microseconds, $3 limit.
select {schema}.sweep_history(coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 microsecond', $3)
