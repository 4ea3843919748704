-- One page of a walk through the archive, the oldest first. Lock: none. Index: the primary key.
-- Parameters: ?1 after this number, ?2 before this number, ?3 rows to look at.
select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, content,
       headers, occurred_at, recorded_at, max_attempts
from postrider_archive where id > ?1 and id < ?2 order by id limit ?3
