-- Records an event in the caller's transaction. Lock: its rows, and that of the key's counter if it is sequenced.
-- Index: event_id_is_unique. Any sequence asks the trigger for the next number of the key; the rest is checked
-- by the table. The part in front of `values` also serves many rows at once.
-- Parameters: event id, stream, event type, aggregate type, aggregate id, ordering key, sequence (0 or null), attempts at most (0 for
--   no limit: see the trigger), when it happened, headers, payload, content type, content.
insert into postrider_event (event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence,
                             max_attempts, occurred_at, headers, payload, content_type, content)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
