-- One page of a walk through the log and the archive, the newest first. Lock: none. Index: their primary keys.
-- Which rows are wanted is told apart by the reader. Parameters: ?1 after this id, ?2 before this id, ?3 rows to look at.
select * from (
    select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, content,
           headers, occurred_at, recorded_at, max_attempts, 0 as archived
    from postrider_event where id > ?1 and id < ?2 order by id desc limit ?3)
union all
select * from (
    select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, content,
           headers, occurred_at, recorded_at, max_attempts, 1
    from postrider_archive where id > ?1 and id < ?2 order by id desc limit ?3)
order by id desc limit ?3
