-- Takes back the marks that a handler's own commit (or a statement that commits by itself) left behind. Lock: the rows.
-- Index: the primary key. By their time as well: where the transaction was rolled back, a mark of these events is somebody else's.
-- Parameters: ?1 consumer, ?2 a JSON array of event ids in hexadecimal.
delete from postrider_inbox
where consumer = ?1 and handled_at = @postrider_marked_at
  and event_id in (select unhex(c.event_id) from json_table(?2, '$[*]' columns (event_id varchar(32) path '$')) c)
