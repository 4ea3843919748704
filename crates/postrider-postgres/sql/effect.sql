-- Opens the transaction of a handler: the lane stays with its holder while it is open, and its events are marked as handled.
-- Lock: the lane's row, as `for key share`: it keeps a claim out, which locks for update and skips what is locked, but neither
-- a settle nor an extension, which change no key; and the inbox rows: a second one that handles the same event at the same
-- time waits for the first and then finds it handled. Index: lane_pkey, inbox_pkey, event_id_is_unique.
-- Under a lease only what the log has is marked: after a failover a relay may hold events that never were.
-- A claim that is under way is waited for, and the lease is then looked at anew. Without the lease nothing is marked.
-- The transaction's id comes along: by it the transaction is known again before its commit.
-- Parameters: $1 subscription (null if no lease is asked for), $2 lane, $3 epoch, $4 owner, $5 consumer, $6 events in their
--   order, $7 the time, if not the database's.
with lease as materialized (
    select l.lane from {schema}.lane l
    where l.subscription = $1::text and l.lane = $2::integer and l.lease_epoch = $3::bigint and l.lease_owner = $4::text
    for key share
), marked as (
    insert into {schema}.inbox (consumer, event_id, handled_at)
    select $5::text, n.event_id, coalesce($7::timestamptz, clock_timestamp())
    from unnest($6::uuid[]) with ordinality as n (event_id, place)
    where $1::text is null
       or (exists (select from lease) and exists (select from {schema}.event e where e.event_id = n.event_id))
    order by n.place
    on conflict do nothing
    returning event_id
)
select $1::text is null or exists (select from lease) as held, (select array_agg(event_id) from marked) as first,
       pg_current_xact_id()::text as id
