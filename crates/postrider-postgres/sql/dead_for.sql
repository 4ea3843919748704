-- The subscriptions that an event is dead for. Lock: none; they are looked at again under the locks of their lanes.
-- Index: event_id_is_unique, delivery_event. Parameters: $1 event id.
select d.subscription
from {schema}.event e
join {schema}.delivery d on d.id = e.id and d.event_id = e.event_id
where e.event_id = $1 and d.state = 'dead'
order by d.subscription
