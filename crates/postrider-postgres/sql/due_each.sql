-- No order: each row stands for itself; one that waited under an earlier policy waits no more.
-- Index: delivery_open.
chosen as (
    select d.id, d.event_id, d.state, d.attempts, d.first_failed_at, d.error_code
    from {schema}.delivery d cross join clock
    where d.subscription = $1::text and d.lane_hash % $2::integer = $3::integer
      and d.state in ('waiting', 'retrying') and (d.state = 'waiting' or d.next_at <= clock.now)
)
