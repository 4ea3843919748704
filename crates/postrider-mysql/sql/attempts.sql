-- The last tries of an event that failed, by subscription. Lock: none. Index: the primary key, once a subscription.
-- Parameters: ?1 number, ?2 event id.
select d.subscription, d.past
from postrider_subscription s straight_join postrider_delivery d on d.subscription = s.name and d.id = ?1 and d.event_id = ?2
where d.past is not null
order by d.subscription
