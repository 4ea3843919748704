-- Falls asleep until a time: who records from now on rings. Lock: an advisory one among relays, so that each time is
-- later than the last and nobody silences another's bell.
-- Parameters: $1 lock, $2 microseconds to sleep.
with locked as materialized (select pg_advisory_xact_lock($1::bigint))
select setval('{schema}.bell', greatest((select last_value from {schema}.bell) + 1,
                                        (extract(epoch from clock_timestamp()) * 1000000)::bigint + $2::bigint)) as until
from locked
