-- Makes a subscription, or brings an existing one up to what is asked for. Lock: its row.
-- Parameters: $1 name, $2 streams, $3 types, $4 order, $5 on_dead, $6 lanes, $7 since, $8 start frontier,
--   $9 start snapshot, $10 the time, if not the database's, $11 whether it may be replayed.
-- Returns whether it is new, and whether a change of its lanes is under way.
insert into {schema}.subscription as s (name, streams, types, order_policy, on_dead, lanes, since, start_frontier,
                                        start_snapshot, created_at, replay)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::pg_snapshot, coalesce($10::timestamptz, clock_timestamp()), $11)
on conflict (name) do update
set streams = excluded.streams, types = excluded.types, order_policy = excluded.order_policy, on_dead = excluded.on_dead,
    replay = excluded.replay,
    lanes_next = case when s.lanes_next is not null or s.lanes <> excluded.lanes then excluded.lanes end
returning xmax = 0 as is_new, s.lanes_next is not null as changing
