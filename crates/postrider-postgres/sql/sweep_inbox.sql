-- One round of forgetting what was handled. Parameters: $1 the time, if not the database's, $2 age in microseconds,
-- $3 limit.
select {schema}.sweep_inbox(coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 microsecond', $3)
