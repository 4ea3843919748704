-- Notes that a consumer has handled events, in their order; those that it had are left at that. Lock: the rows, and a second
-- one that handles the same event at the same time waits for the first. Index: the primary key.
-- Parameters: ?1 consumer, ?2 a JSON array of event ids in hexadecimal, ?3 the time, if not the database's.
insert ignore into postrider_inbox (consumer, event_id, handled_at)
select ?1, unhex(c.event_id), coalesce(?3, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)))
from json_table(?2, '$[*]' columns (place for ordinality, event_id varchar(32) path '$')) c
order by c.place
