-- Records one event in the caller's transaction. Lock: none but the row's own (a sequenced one: its key's counter).
-- Index: event_id_is_unique decides whether the id is taken; the transaction stays usable if it is.
insert into {schema}.event (event_id, stream, event_type, aggregate_type, aggregate_id, headers, payload, ordering_key,
                            sequence, max_attempts, occurred_at, content_type, content)
values ($1, $2, $3, $4, $5, $6::text::json, coalesce($7::text::json, 'null'), $8, $9, $10, coalesce($11, clock_timestamp()), $12, $13)
on conflict (event_id) do nothing
