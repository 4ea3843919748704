-- Gives dead deliveries up for good. Lock: their rows, after the lanes'. Index: delivery_dead.
-- Parameters: $1 subscription, $2 event ids or nothing for all.
update {schema}.delivery d
set state = 'discarded'
where d.subscription = $1 and d.state = 'dead' and ($2::uuid[] is null or d.event_id = any ($2::uuid[]))
