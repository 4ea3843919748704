-- Records an event in the caller's transaction. Lock: the database's write lock, which the transaction keeps.
-- Index: event_id_is_unique. Any sequence asks the trigger for the next number of the key; the rest is checked
-- by the table. The part in front of `values` also serves many rows at once.
-- Parameters: ?1 event id, ?2 stream, ?3 event type, ?4 aggregate type, ?5 aggregate id, ?6 ordering key,
--   ?7 sequence (0 or null), ?8 attempts at most, ?9 when it happened, ?10 headers, ?11 payload, ?12 content type,
--   ?13 content.
insert into postrider_event (event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence,
                             max_attempts, occurred_at, headers, payload, content_type, content)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
