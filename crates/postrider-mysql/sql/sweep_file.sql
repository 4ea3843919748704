-- Puts a masked event into the archive. Lock: the new row. Index: the primary key of the archive.
-- Parameters: the columns in their order.
insert into postrider_archive (id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, max_attempts,
                               occurred_at, recorded_at, headers, payload, content_type, content, archived_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
