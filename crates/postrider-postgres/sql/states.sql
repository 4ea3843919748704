-- Where events stand, for people. Index: event_pkey, or event_id_is_unique for one event.
-- Parameters: $1 subscription, $2 event, $3 state, $4 after this id, $5 limit.
select id, event_id, subscription, state, attempts, next_retry_at, last_attempt_at, delivered_at, delivered_by,
       lease_owner, lease_until, error_code, error_message
from {schema}.event_state
where ($1::text is null or subscription = $1) and ($2::uuid is null or event_id = $2)
  and ($3::text is null or state = $3) and id > $4
order by id, subscription limit $5
