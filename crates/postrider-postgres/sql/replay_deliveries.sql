-- Forgets the deliveries of what comes again; of what the subscription wants no longer nothing comes, so it stays.
-- Lock: the rows. Index: delivery_pkey, event_pkey. Parameters: $1 subscription, $2 the id.
delete from {schema}.delivery d
using {schema}.subscription s, {schema}.event e
where s.name = $1::text and d.subscription = s.name and d.id > $2::bigint and e.id = d.id
  and (cardinality(s.streams) = 0 or e.stream like any (s.streams))
  and (cardinality(s.types) = 0 or e.event_type like any (s.types))
