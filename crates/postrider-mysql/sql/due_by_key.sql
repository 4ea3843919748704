-- Key order: of each key the open rows from its first on, up to one whose time has not come, that is in hand, or that is dead and holds.
-- Index: the primary key for the first ones, delivery_key for what follows each, as many as are said.
select k.id, k.event_id, k.state, k.attempts, k.first_failed_at, k.error_code, k.past,
       max(k.state = 'dead' or (k.state = 'retrying' and k.next_at > ?4) or (k.state = 'running' and k.epoch <=> ?5))
           over (partition by h.first_id order by k.id) as blocked
from (select f.id as first_id, f.lane_hash, f.ordering_key,
             coalesce((select n.id from postrider_delivery n force index (delivery_key)
                       where n.subscription = ?1 and n.holds = true and n.lane_hash = f.lane_hash and n.ordering_key = f.ordering_key
                       order by n.id limit 1 offset ?7), 9223372036854775807) as last_id
      from json_table(?6, '$[*]' columns (id bigint path '$')) c
      straight_join postrider_delivery f on f.subscription = ?1 and f.id = c.id) h
straight_join postrider_delivery k force index (delivery_key)
    on k.subscription = ?1 and k.holds = true and k.lane_hash = h.lane_hash and k.ordering_key = h.ordering_key
   and k.id between h.first_id and h.last_id
