-- Takes events out of the log, to be filed in the same transaction: see the function. Lock: as in sweep.sql. Index: event_pkey.
-- Parameters: $1 the time, if not the database's, $2 age in microseconds, $3 limit, $4 after this id, $5 whether they go to the archive.
select e.id, e.event_id, e.stream::text, e.event_type::text, e.aggregate_type::text, e.aggregate_id::text,
       e.ordering_key::text, e.sequence, e.payload, e.content_type::text, e.content, e.headers, e.occurred_at, e.recorded_at,
       e.max_attempts, now
from (select coalesce($1::timestamptz, clock_timestamp()) as now) as clock
cross join lateral {schema}.take_events($5, now - $2::bigint * interval '1 microsecond', $4, $3) as e
