-- How many of the events that retention may take go through memory at once, from the first on, and how many there are.
-- Lock: none. Index: event_pkey. What a value takes as it is stored is known without reading it, and is never more than it is: so
-- few wide ones are read in vain.
-- Parameters: $1 the time, if not the database's, $2 age in microseconds, $3 limit, $4 after this id, $5 bytes.
with taken as materialized (
    select e.id, sum(pg_column_size(e.payload) + pg_column_size(e.headers) + coalesce(pg_column_size(e.content), 0))
                     over (order by e.id) as stored
    from {schema}.sweepable(coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 microsecond', $4, $3) as s (id)
    join {schema}.event e on e.id = s.id
)
select (select count(*) from (
            select sum(octet_length(e.payload::text) + octet_length(e.headers::text) + coalesce(octet_length(e.content), 0))
                       over (order by e.id) as bytes
            from taken join {schema}.event e on e.id = taken.id
            where taken.stored <= $5::bigint) as fitting
        where fitting.bytes <= $5::bigint) as fitting,
       (select count(*) from taken) as all
