-- No order: each row stands for itself; one that waited under an earlier policy waits no more.
-- Index: delivery_look, those whose time came first.
chosen as materialized (
    select d.id, d.event_id, d.state, d.attempts, d.first_failed_at, d.error_code, d.past
    from {schema}.delivery d
    where d.subscription = $1::text and d.lane = $2::integer and d.look_at <= (select now from clock)
      and not (d.state = 'running' and d.epoch = $6::bigint)
    order by d.look_at, d.id limit $3::bigint
)
