-- Records an event unless its id is in the log. Lock, index, parameters: as in record.sql.
-- Not `on conflict do nothing`: the trigger that stops `insert or replace` refuses a taken id before that.
insert into postrider_event (event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence,
                             max_attempts, occurred_at, headers, payload, content_type, content)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13
where not exists (select 1 from postrider_event where event_id = ?1)
