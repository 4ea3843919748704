-- Notes that a consumer has handled events, in their order, and says which of them it had not. Lock: the database's write
-- lock. Index: the primary key. Parameters: ?1 consumer, ?2 a JSON array of event ids in hexadecimal, ?3 the time, if not the
--   database's.
insert into postrider_inbox (consumer, event_id, handled_at)
select ?1, unhex(e.value), coalesce(?3, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000)
from json_each(?2) e
where true
on conflict (consumer, event_id) do nothing
returning event_id
