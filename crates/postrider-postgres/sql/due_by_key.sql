-- Key order: of each key the open rows from its first on, up to one whose time has not come, that is in hand, or that is dead and holds.
-- Index: delivery_look for the first row of keys, those whose time came first; delivery_key for what follows each, so many that
-- all keys together have twice as many as are wanted at most. That a row is the first of its key is looked at again: a relay of
-- before may have written beside it. (By `<=`, because the planner believes that `=` leaves next to nothing, and would sort all.)
head as materialized (
    select d.key, d.id
    from {schema}.delivery d
    where d.subscription = $1::text and d.lane = $2::integer and d.look_at <= (select now from clock) and d.holds
      and not (d.state = 'running' and d.epoch = $6::bigint)
      and d.id <= (select f.id from {schema}.delivery f
                   where f.subscription = $1::text and f.key = d.key and f.holds order by f.key, f.id limit 1)
    order by d.look_at, d.id limit $3::bigint
), chosen as materialized (
    select d.*
    from head cross join lateral (
        select f.*, bool_or(f.state = 'dead' or (f.state = 'retrying' and f.next_at > (select now from clock))
                            or (f.state = 'running' and f.epoch = $6::bigint))
                        over (order by f.id) as blocked
        from (select k.id, k.event_id, k.state, k.attempts, k.first_failed_at, k.error_code, k.past, k.next_at, k.epoch from {schema}.delivery k
              where k.subscription = $1::text and k.holds and k.key = head.key
              order by k.key, k.id limit (select ($3::bigint + count(*) - 1) / count(*) from head)) as f
    ) as d
    where not d.blocked
)
