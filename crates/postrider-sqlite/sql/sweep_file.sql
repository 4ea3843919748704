-- Puts a masked event into the archive. Lock: the database's write lock. Index: the primary key of the archive.
-- Parameters: the columns in their order.
insert into postrider_archive (id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, max_attempts,
                               occurred_at, recorded_at, headers, payload, content_type, content, archived_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
