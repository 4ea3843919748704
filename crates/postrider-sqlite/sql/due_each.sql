-- No order: each row stands for itself; one that waited under an earlier policy waits no more.
-- Index: postrider_delivery_look, those whose time came first.
chosen as materialized (
    select d.id, d.event_id, d.state, d.attempts, d.first_failed_at, d.error_code, d.past
    from postrider_delivery d indexed by postrider_delivery_look
    where d.subscription = ?1 and d.lane = ?2 and d.look_at <= ?4 and not (d.state = 'running' and d.epoch is ?5)
    order by d.look_at, d.id limit ?3
)
