-- Takes what comes again out of the history: retention counts from when it has come. Lock: those rows.
-- Index: settled_batch_range. Parameters: ?1 subscription, ?2 the number.
update postrider_settled_batch set first_id = least(first_id, ?2 + 1), last_id = ?2 where subscription = ?1 and last_id > ?2
