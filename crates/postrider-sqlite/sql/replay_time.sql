-- The first event that was recorded at a time or later. Lock: none of its own. Index: the primary key of the log, from its
-- beginning on: exact, whatever the clock did. Parameters: ?1 the time.
select min(id) as id from postrider_event where recorded_at >= ?1
