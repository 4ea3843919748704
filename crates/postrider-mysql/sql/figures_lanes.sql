-- Where the lanes of a subscription stand. Lock: none. Index: the primary key.
-- Parameters: ?1 subscription, ?2 the time.
select lane, position, case when lease_owner is not null and lease_until > ?2 and lease_until <= ?2 + lease_for + 1000000
                            then reading else 0 end as reading
from postrider_lane where subscription = ?1
