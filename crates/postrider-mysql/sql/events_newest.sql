-- One page of a walk through the log and the archive, the newest first. Lock: none. Index: their primary keys.
-- Which rows are wanted is told apart by the reader. Parameters: ?1 after this id, ?2 before this id, ?3 rows to look at.
select * from (
    select n.seq as id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence,
           e.payload, e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts, 0 as archived
    from postrider_numbered n straight_join postrider_event e on e.id = n.id
    where n.seq > ?1 and n.seq < ?2 order by n.seq desc limit ?3) as log
union all
select * from (
    select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, content,
           headers, occurred_at, recorded_at, max_attempts, 1 as archived
    from postrider_archive where id > ?1 and id < ?2 order by id desc limit ?3) as archive
order by id desc limit ?3
