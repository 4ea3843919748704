-- Whether the log has the last row that a batch has passed. Lock: none of its own. Index: the primary key of the log.
-- An event id of another length than 16 bytes is known by its number alone: see row.rs.
-- Parameters: ?1 id, ?2 event id.
select 1 from postrider_event where id = ?1 and (event_id = ?2 or length(event_id) <> 16)
