-- Wakes up: nobody need ring any more, unless another relay has fallen asleep since. Others that fell asleep before may
-- rely on this value: they are rung, look, and arm the bell for themselves. If somebody else has the lock, the bell stays armed until
-- its time has come.
-- Parameters: $1 lock, $2 the time that this relay armed the bell with.
with locked as materialized (select pg_try_advisory_xact_lock($1::bigint) as free)
select case when free and (select last_value from {schema}.bell) = $2::bigint
            then (select pg_notify({channel}, '') from (select setval('{schema}.bell', 0)) as silenced) end
from locked
