-- The document's table, as a view: its columns and its five states over Postrider's log. An event is there from its commit on, also
-- before the first relay has made the subscription. `event_id` is the id that fraud detection and operators see; `position` is the
-- number that the document's `event_id` would be.
create or replace view transfer_events as
select e.event_id,
       e.id as position,
       e.aggregate_type,
       e.aggregate_id,
       e.event_type,
       e.payload::text as payload,
       e.headers::text as headers,
       case s.state
           when 'processing' then 'SENDING'
           when 'done' then 'PUBLISHED'
           when 'retrying' then 'FAILED'
           when 'dead' then 'DEAD_LETTER'
           when 'discarded' then 'DEAD_LETTER'
           else 'PENDING'
       end as status,
       case when s.state = 'done' then greatest(s.attempts - 1, 0) else coalesce(s.attempts, 0) end as attempt_count,
       coalesce(s.next_retry_at, e.recorded_at) as next_retry_at,
       e.recorded_at as created_at,
       coalesce(s.last_attempt_at, e.recorded_at) as updated_at,
       s.delivered_at as published_at,
       s.error_message as last_error
from postrider.event e
left join postrider.event_state s on s.id = e.id and s.subscription = 'transfers-to-kafka'
where e.stream = 'transfers';
