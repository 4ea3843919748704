-- What else is to be known of a lane's open deliveries: the time of this look, when the next one's time comes, and whether
-- any of them holds. Lock: none. Index: postrider_delivery_look, postrider_delivery_lane; named, as in due.sql.
-- Parameters: ?1 subscription, ?2 lane, ?3 the time, if not the database's.
with clock (now) as materialized (
    select coalesce(?3, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000)
)
select clock.now,
       (select d.look_at from postrider_delivery d indexed by postrider_delivery_look
        where d.subscription = ?1 and d.lane = ?2 and d.look_at > clock.now
        order by d.look_at limit 1) as next_at,
       exists (select 1 from postrider_delivery d indexed by postrider_delivery_lane
               where d.subscription = ?1 and d.lane = ?2 and d.holds) as holds
from clock
