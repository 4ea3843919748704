-- Forgets the deliveries of what comes again; of what the subscription wants no longer nothing comes, so it stays.
-- Lock: the database's write lock. Index: the primary keys. Parameters: ?1 subscription, ?2 the id.
delete from postrider_delivery where subscription = ?1 and id in (
    select d.id from postrider_delivery d
    cross join postrider_event e on e.id = d.id
    join postrider_subscription s on s.name = d.subscription
    where d.subscription = ?1 and d.id > ?2
      and (s.streams = '[]' or exists (
          select 1 from json_each(s.streams) p where e.stream glob replace(replace(p.value, '[', '[[]'), '?', '[?]')))
      and (s.types = '[]' or exists (
          select 1 from json_each(s.types) p where e.event_type glob replace(replace(p.value, '[', '[[]'), '?', '[?]'))))
