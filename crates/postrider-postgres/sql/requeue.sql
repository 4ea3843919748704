-- Tries dead deliveries again. Lock: their rows, after the lanes'. Index: delivery_dead.
-- The id decides a delivery's place within its key, so a requeued one comes before those that wait behind it.
-- Parameters: $1 subscription, $2 event ids or nothing for all, $3 the time, if not the database's.
update {schema}.delivery d
set state = 'retrying', attempts = 0, next_at = coalesce($3::timestamptz, clock_timestamp()), first_failed_at = null,
    requeued = d.requeued + 1
where d.subscription = $1 and d.state = 'dead' and ($2::uuid[] is null or d.event_id = any ($2::uuid[]))
