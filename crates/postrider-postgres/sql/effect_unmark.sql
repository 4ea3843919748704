-- Takes back the marks that a handler's own commit left behind. Lock: the rows. Index: inbox_pkey.
-- By the id of the transaction that wrote them: where that was rolled back, a mark of these events is somebody else's.
-- Parameters: $1 consumer, $2 events, $3 the transaction's id.
delete from {schema}.inbox where consumer = $1::text and event_id = any ($2::uuid[]) and xmin = $3::text::xid8::xid
