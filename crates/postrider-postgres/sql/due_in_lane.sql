-- Strict order: the open rows of the lane from its first on, up to one whose time has not come, that is in hand, or that is dead and holds.
-- Index: delivery_lane, as many rows as are wanted.
chosen as materialized (
    select f.*
    from (select d.id, d.event_id, d.state, d.attempts, d.first_failed_at, d.error_code, d.past,
                 bool_or(d.state = 'dead' or (d.state = 'retrying' and d.next_at > (select now from clock))
                         or (d.state = 'running' and d.epoch = $6::bigint))
                     over (order by d.id) as blocked
          from (select * from {schema}.delivery k
                where k.subscription = $1::text and k.lane = $2::integer and k.holds order by k.id limit $3::bigint) as d) as f
    where not f.blocked
)
