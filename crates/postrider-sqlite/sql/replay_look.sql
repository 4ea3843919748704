-- What a replay has to know of a subscription, and how far retention has got. Lock: none of its own. Index: the primary keys.
-- Parameters: ?1 subscription.
select s.replay, s.lanes_next is not null as changing, s.start_frontier, s.streams, s.types, s.since, s.lanes,
       w.id as swept_id, w.recorded_at as swept_at,
       (select e.recorded_at from postrider_event e where e.id > w.id order by e.id limit 1) as whole_from,
       (select f.handled_at from postrider_forgotten f where f.consumer = s.name) as forgotten_at
from postrider_subscription s left join postrider_swept w on true where s.name = ?1
