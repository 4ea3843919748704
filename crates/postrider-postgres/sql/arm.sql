-- Falls asleep until a time: who records from now on rings. Lock: an advisory one among relays, so that each time is
-- later than the last and nobody silences another's bell. It is not waited for, because any role can hold it: without it there
-- is no time, and the relay polls.
-- Parameters: $1 lock, $2 microseconds to sleep.
with locked as materialized (select pg_try_advisory_xact_lock($1::bigint) as free)
select case when free then
           setval('{schema}.bell', greatest((select last_value from {schema}.bell) + 1,
                                            (extract(epoch from clock_timestamp()) * 1000000)::bigint + $2::bigint))
       end as until
from locked
