-- Strict order: the open rows of the lane from its first on, up to one whose time has not come or that is dead and holds.
-- Index: delivery_key; a strict lane reads nothing more while a row is open, so there are few.
chosen as (
    select f.*
    from (select d.id, d.event_id, d.state, d.attempts, d.first_failed_at, d.error_code,
                 bool_or(d.state = 'dead' or (d.state = 'retrying' and d.next_at > (select now from clock)))
                     over (order by d.id) as blocked
          from {schema}.delivery d
          where d.subscription = $1::text and d.holds and d.lane_hash % $2::integer = $3::integer) as f
    where not f.blocked
)
