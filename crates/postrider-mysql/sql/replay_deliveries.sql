-- Forgets the deliveries of what comes again; of what the subscription wants no longer nothing comes, so it stays.
-- Lock: those rows. Index: the primary keys, event_id_is_unique. Parameters: ?1 subscription, ?2 the number.
delete d from postrider_delivery d
straight_join postrider_event e on e.event_id = d.event_id
straight_join postrider_subscription s on s.name = d.subscription
where d.subscription = ?1 and d.id > ?2
  and (s.streams_regexp is null or e.stream regexp s.streams_regexp)
  and (s.types_regexp is null or e.event_type regexp s.types_regexp)
