-- The last tries of an event that failed, by subscription. Lock: none. Index: the primary key, once a subscription.
-- Parameters: $1 id, $2 event id.
select d.subscription, d.past
from {schema}.subscription s
join {schema}.delivery d on d.subscription = s.name and d.id = $1::bigint and d.event_id = $2::uuid
where d.past is not null
order by d.subscription
