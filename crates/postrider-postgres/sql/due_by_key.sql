-- Key order: of each key the open rows from its first on, up to one whose time has not come or that is dead and holds.
-- Index: delivery_key, from key to key by its first row; so it costs what there are keys, not what waits behind them.
head (key, id, lane_hash) as (
    (select d.key, d.id, d.lane_hash from {schema}.delivery d
     where d.subscription = $1::text and d.holds order by d.key, d.id limit 1)
    union all
    select n.key, n.id, n.lane_hash
    from head cross join lateral (
        select d.key, d.id, d.lane_hash from {schema}.delivery d
        where d.subscription = $1::text and d.holds and d.key > head.key order by d.key, d.id limit 1) as n
), chosen as (
    select d.*
    from head cross join lateral (
        select f.*, bool_or(f.state = 'dead' or (f.state = 'retrying' and f.next_at > (select now from clock)))
                        over (order by f.id) as blocked
        from (select k.id, k.event_id, k.state, k.attempts, k.first_failed_at, k.error_code, k.next_at from {schema}.delivery k
              where k.subscription = $1::text and k.holds and k.key = head.key order by k.key, k.id limit $4::bigint) as f
    ) as d
    where head.lane_hash % $2::integer = $3::integer and not d.blocked
)
