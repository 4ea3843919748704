-- Key order: of each key the open rows from its first on, up to one whose time has not come, that is in hand, or that is dead and holds.
-- Index: postrider_delivery_look for the first row of keys, those whose time came first; postrider_delivery_key for what follows each, so
-- many that all keys together have twice as many as are wanted at most.
head as materialized (
    select d.key, d.id
    from postrider_delivery d indexed by postrider_delivery_look
    where d.subscription = ?1 and d.lane = ?2 and d.look_at <= ?4 and d.holds and not (d.state = 'running' and d.epoch is ?5)
      and d.id = (select f.id from postrider_delivery f indexed by postrider_delivery_key
                  where f.subscription = ?1 and f.key = d.key and f.holds order by f.id limit 1)
    order by d.look_at, d.id limit ?3
), chosen as materialized (
    select * from (
        select k.id, k.event_id, k.state, k.attempts, k.first_failed_at, k.error_code, k.past,
               max(k.state = 'dead' or (k.state = 'retrying' and k.next_at > ?4) or (k.state = 'running' and k.epoch is ?5))
                   over (partition by k.key order by k.id) as blocked
        from (select head.key,
                     coalesce((select f.id from postrider_delivery f indexed by postrider_delivery_key
                               where f.subscription = ?1 and f.key = head.key and f.holds order by f.id
                               limit 1 offset (select (?3 + count(*) - 1) / count(*) - 1 from head)), 9223372036854775807) as last
              from head) h
        cross join postrider_delivery k indexed by postrider_delivery_key
            on k.subscription = ?1 and k.key = h.key and k.holds and k.id <= h.last)
    where not blocked
)
