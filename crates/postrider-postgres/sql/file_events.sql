-- Puts events that were taken out of the log where they are to be kept: into the archive, or a table of the application.
-- Lock: the new rows. It follows `insert into TABLE (COLUMNS)`, both quoted; {fields} are columns of `f`. A field is given as it is, and
-- its column takes it as it takes any value that is assigned to it: what does not fit is refused, not cut.
-- Parameters: $1 ids, $2 event ids, $3 streams, $4 types, $5 and $6 aggregates, $7 keys, $8 sequences, $9 most attempts,
--   $10 and $11 times, $12 headers, $13 payloads, $14 content types, $15 contents, $16 the time, $17 whether keys are spelled out.
select {fields}
from (
    select n.id, n.event_id, n.stream, n.event_type, n.aggregate_type, n.aggregate_id,
           case when $17::boolean then {schema}.key_of(n.ordering_key, n.aggregate_type, n.aggregate_id) else n.ordering_key end
               as ordering_key,
           n.sequence, n.max_attempts, n.occurred_at, n.recorded_at, n.headers::json as headers, n.payload::json as payload,
           n.content_type, n.content, $16::timestamptz as archived_at
    from unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
                $9::integer[], $10::timestamptz[], $11::timestamptz[], $12::text[], $13::text[], $14::text[], $15::bytea[])
        as n (id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, max_attempts,
              occurred_at, recorded_at, headers, payload, content_type, content)
    order by n.id
) as f
