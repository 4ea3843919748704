-- One round of forgetting what was handled: see the function. Lock: the turn of inboxes, shared; the rows that go.
-- Index: inbox_handled. Parameters: $1 the time, if not the database's, $2 age in microseconds, $3 limit, $4 from this time on.
select swept.taken, swept.reached from {schema}.sweep_inbox(
    coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 microsecond',
    coalesce($4::timestamptz, '-infinity'), $3) as swept
