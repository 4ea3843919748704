-- Notes that a consumer has handled an event; no row changes if it had. Lock: the row; a second one at the same time waits for
-- the first. Index: the primary key. Parameters: ?1 consumer, ?2 event id, ?3 the time, if not the database's.
insert ignore into postrider_inbox (consumer, event_id, handled_at)
values (?1, ?2, coalesce(?3, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))))
