-- Records any number of events in one round trip, in the given order, all or (if an id is taken) none.
insert into {schema}.event (event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence,
                            max_attempts, occurred_at, headers, payload, content_type, content)
select n.event_id, n.stream, n.event_type, n.aggregate_type, n.aggregate_id, n.ordering_key, n.sequence,
       n.max_attempts, coalesce(n.occurred_at, clock_timestamp()), n.headers::json, coalesce(n.payload::json, 'null'), n.content_type, n.content
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::integer[],
            $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13::bytea[])
    with ordinality as n (event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence,
                          max_attempts, occurred_at, headers, payload, content_type, content, place)
where not exists (select from {schema}.event e where e.event_id = any ($1::uuid[]))
order by n.place
