-- Marks an event as handled by a consumer, in the consumer's transaction. Lock: the row; a second one that handles
-- the same event at the same time waits for the first and then finds it handled.
insert into {schema}.inbox (consumer, event_id, handled_at)
values ($1, $2, coalesce($3::timestamptz, clock_timestamp()))
on conflict do nothing
