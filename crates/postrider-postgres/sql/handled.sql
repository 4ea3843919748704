-- Which events a consumer has handled. Lock: none. Index: inbox_pkey.
-- Parameters: $1 consumer, $2 events.
select i.event_id from {schema}.inbox i where i.consumer = $1 and i.event_id = any ($2::uuid[])
