-- What else is to be known of a lane's open deliveries: the time of this look, when the next one's time comes, and whether
-- any of them holds. Lock: none. Index: postrider_delivery_next, postrider_delivery_key; named, as in due.sql.
-- Parameters: ?1 subscription, ?2 lanes, ?3 lane, ?4 the time, if not the database's.
with clock (now) as materialized (
    select coalesce(?4, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000)
)
select clock.now,
       (select d.next_at from postrider_delivery d indexed by postrider_delivery_next
        where d.subscription = ?1 and d.state = 'retrying' and d.next_at > clock.now and d.lane_hash % ?2 = ?3
        order by d.next_at limit 1) as next_at,
       exists (select 1 from postrider_delivery d indexed by postrider_delivery_key
               where d.subscription = ?1 and d.holds and d.lane_hash % ?2 = ?3) as holds
from clock
