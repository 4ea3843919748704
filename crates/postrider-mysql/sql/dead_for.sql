-- The subscriptions that an event is dead for, and its number. Lock: none; they are looked at again under the locks of their lanes.
-- Index: delivery_state, over the dead ones alone. Parameters: ?1 event id.
select d.subscription, d.id
from postrider_delivery d force index (delivery_state)
where d.state = 'dead' and d.event_id = ?1
order by d.subscription
