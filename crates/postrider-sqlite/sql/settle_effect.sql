-- Whether an event's effect is marked in the inbox. Lock: none of its own. Index: the primary key.
-- Parameters: ?1 consumer, ?2 event id.
select 1 from postrider_inbox where consumer = ?1 and event_id = ?2
