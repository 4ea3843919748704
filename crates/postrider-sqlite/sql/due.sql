-- The deliveries of a lane that are to be tried now, by id.
-- Lock: none. Index: postrider_delivery_due in the order of ids, postrider_delivery_blocking once a row; named,
-- because without statistics SQLite goes through the primary key, and so through all that was ever retried. Under key
-- order a row is due unless it, or one of its key before it, is dead or retrying later; what waits behind comes
-- along. Under strict order the first such row of the lane stops all after it. Without order each stands for itself.
-- By its event id as well as its number: after a set-back another event may have that number.
-- Parameters: ?1 subscription, ?2 lanes, ?3 lane, ?4 limit, ?5 the time, ?6 order policy.
select e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, e.sequence, e.payload,
       e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts,
       d.state, d.attempts, d.first_failed_at, d.error_code
from postrider_delivery d indexed by postrider_delivery_due cross join postrider_event e on e.id = d.id and e.event_id = d.event_id
where d.subscription = ?1 and d.lane_hash % ?2 = ?3 and d.state in ('waiting', 'retrying')
  and (d.state = 'waiting' or d.next_at <= ?5)
  and case ?6
      when 'none' then 1
      when 'strict' then d.id < coalesce((
          select min(b.id) from postrider_delivery b indexed by postrider_delivery_blocking
          where b.subscription = ?1 and b.lane_hash % ?2 = ?3 and b.holds and b.state in ('retrying', 'dead')
            and (b.state = 'dead' or b.next_at > ?5)), 9223372036854775807)
      else not exists (
          select 1 from postrider_delivery b indexed by postrider_delivery_blocking
          where b.subscription = ?1 and b.key = d.key and b.holds and b.state in ('retrying', 'dead') and b.id < d.id
            and (b.state = 'dead' or b.next_at > ?5))
      end
order by d.id limit ?4
