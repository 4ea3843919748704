-- Notes that a consumer has handled an event; no row changes if it had. Lock: the database's write lock.
-- Index: the primary key. Parameters: ?1 consumer, ?2 event id, ?3 the time, if not the database's.
insert into postrider_inbox (consumer, event_id, handled_at)
values (?1, ?2, coalesce(?3, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000))
on conflict (consumer, event_id) do nothing
