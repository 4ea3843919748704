-- The keys of the events that did not simply succeed. Lock: none of its own. Index: the primary key of the log.
-- Parameters: ?1 a JSON array of ids.
select e.id, coalesce(e.ordering_key, e.aggregate_type || ':' || e.aggregate_id) as key
from json_each(?1) c cross join postrider_event e on e.id = c.value
