-- Takes what comes again out of the history: retention counts from when it has come. Late events before it stay in.
-- Lock: the rows. Index: settled_batch_range. Parameters: $1 subscription, $2 the id.
update {schema}.settled_batch b
set first_id = least(b.first_id, $2::bigint + 1), last_id = $2::bigint,
    late = (select array_agg(x) from unnest(b.late) as x where x <= $2::bigint)
where b.subscription = $1::text and b.last_id > $2::bigint
