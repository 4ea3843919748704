-- One page of a walk through the log and the archive, by id. Lock: none. Index: event_pkey, archive_pkey.
-- The first row is about the page itself: how many rows were looked at, the last id of them and its time.
-- {direction} is `asc` or `desc`, {end} the other one.
-- Parameters: $1 after this id, $2 before this id, $3 rows to look at, $4 aggregate type, $5 aggregate id, $6 key, $7 type and
--   $8 stream as patterns, $9 from, $10 until, $11 correlation id, $12 whether only those with a cause.
with page as materialized (
    select * from (
        (select e.id, e.event_id, e.stream::text, e.event_type::text, e.aggregate_type::text, e.aggregate_id::text,
                e.ordering_key::text, e.sequence, e.payload, e.content_type::text, e.content, e.headers, e.occurred_at,
                e.recorded_at, e.max_attempts, false as archived
         from {schema}.event e where e.id > $1::bigint and e.id < $2::bigint order by e.id {direction} limit $3::bigint)
        union all
        (select a.id, a.event_id, a.stream, a.event_type, a.aggregate_type, a.aggregate_id, a.ordering_key, a.sequence, a.payload,
                a.content_type, a.content, a.headers, a.occurred_at, a.recorded_at, a.max_attempts, true
         from {schema}.archive a where a.id > $1::bigint and a.id < $2::bigint order by a.id {direction} limit $3::bigint)
    ) as both_of_them order by id {direction} limit $3::bigint
), last as materialized (
    select id, recorded_at from page order by id {end} limit 1
)
select (select count(*) from page) as id, null::uuid as event_id, null::text as stream, null::text as event_type,
       null::text as aggregate_type, null::text as aggregate_id, null::text as ordering_key, (select id from last) as sequence,
       null::json as payload, null::text as content_type, null::bytea as content, null::json as headers,
       null::timestamptz as occurred_at, (select recorded_at from last) as recorded_at, null::integer as max_attempts,
       null::boolean as archived
union all
select * from page
where ($4::text is null or aggregate_type = $4) and ($5::text is null or aggregate_id = $5)
  and ($6::text is null or {schema}.key_of(ordering_key, aggregate_type, aggregate_id) = $6)
  and ($7::text is null or event_type like $7) and ($8::text is null or stream like $8)
  and ($9::timestamptz is null or recorded_at >= $9) and ($10::timestamptz is null or recorded_at < $10)
  and ($11::text is null or {schema}.header(headers, 'correlation_id') = $11)
  and (not $12::boolean or {schema}.header(headers, 'causation_id') is not null)
