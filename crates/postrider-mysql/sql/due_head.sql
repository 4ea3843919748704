-- The first open rows of keys that are to be tried now, those whose time came first. It costs what it returns, whatever is open: only the
-- first row of a key has a time in `look_at` (see migration 6).
-- Lock: none. Index: delivery_look, delivery_key once a row. That a row is the first of its key is looked at again.
-- One that is running under the lease's own epoch is in hand: it holds up what is behind it and never comes.
-- Parameters: ?1 subscription, ?2 lane, ?3 limit, ?4 the time, ?5 epoch, ?6 whether each row stands for itself.
select d.id from postrider_delivery d force index (delivery_look)
where d.subscription = ?1 and d.lane = ?2 and d.look_at <= ?4 and not (d.state = 'running' and d.epoch <=> ?5)
  and (?6 or (d.holds = true
              and d.id <= (select f.id from postrider_delivery f force index (delivery_key)
                           where f.subscription = ?1 and f.holds = true and f.lane_hash = d.lane_hash
                             and f.ordering_key = d.ordering_key
                           order by f.id limit 1)))
order by d.look_at, d.id limit ?3
