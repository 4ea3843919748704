-- Notes that a consumer has handled events, in their order; those that it had are left at that. Lock: the rows, and a second
-- one that handles the same event at the same time waits for the first. Index: the primary key.
-- The time is that of the transaction's begin, @postrider_marked_at: by it the marks are known again, see effect_unmark.sql.
-- Under a lease only what the log has is marked: after a failover a relay may hold events that never were.
-- Parameters: ?1 consumer, ?2 a JSON array of event ids in hexadecimal, ?3 whether it is under a lease.
insert ignore into postrider_inbox (consumer, event_id, handled_at)
select ?1, unhex(c.event_id), @postrider_marked_at
from json_table(?2, '$[*]' columns (place for ordinality, event_id varchar(32) path '$')) c
where not ?3 or exists (select 1 from postrider_event e where e.event_id = unhex(c.event_id))
order by c.place
