-- What a replay has to know of a subscription, and how far retention has got. Lock: the subscription's row. Index: the primary
-- keys. Parameters: ?1 subscription.
select s.replay, s.lanes_next is not null as changing, s.start_frontier, s.streams, s.types, s.since, s.lanes,
       (select w.id from postrider_swept w) as swept_id, (select w.recorded_at from postrider_swept w) as swept_at,
       (select timestampdiff(microsecond, '1970-01-01 00:00:00', e.recorded_at)
        from postrider_run r straight_join postrider_event e on e.id between r.id - r.length + 1 and r.id
        where r.seq = postrider_run_at((select w.id + 1 from postrider_swept w))
          and r.seq - (r.id - e.id) > (select w.id from postrider_swept w)
        order by e.id limit 1) as whole_from,
       (select f.handled_at from postrider_forgotten f where f.consumer = s.name) as forgotten_at
from postrider_subscription s where s.name = ?1
