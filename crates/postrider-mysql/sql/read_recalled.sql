-- Whether a subscription wants its lanes back, or has set this one back to be read again. Lock: none. Index: the primary keys.
-- Parameters: ?1 subscription, ?2 lane, ?3 where the lease says that it stands.
select paused or (lanes_next is not null and target is null)
           or exists (select 1 from postrider_lane l where l.subscription = ?1 and l.lane = ?2 and l.position < ?3) as recalled
from postrider_subscription where name = ?1
