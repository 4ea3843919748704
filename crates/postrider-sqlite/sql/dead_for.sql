-- The subscriptions that an event is dead for, and its number. Lock: the database's write lock.
-- Index: event_id_is_unique, the primary key. Parameters: ?1 event id.
select d.subscription, d.id
from postrider_event e
join postrider_delivery d on d.id = e.id and d.event_id = e.event_id
where e.event_id = ?1 and d.state = 'dead'
order by d.subscription
