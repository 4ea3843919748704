-- The keys of the events that did not simply succeed. Lock: none of its own. Index: the primary key of the log.
-- By event id as well as number: what became of one event is never written to a stranger. An event id of another length than 16
-- bytes is known by its number alone: see row.rs.
-- Parameters: ?1 a JSON array of ids and event ids.
select e.id, coalesce(e.ordering_key, e.aggregate_type || ':' || e.aggregate_id) as key
from json_each(?1) c
cross join postrider_event e on e.id = c.value ->> 'id'
    and (e.event_id = unhex(c.value ->> 'event_id') or length(e.event_id) <> 16)
