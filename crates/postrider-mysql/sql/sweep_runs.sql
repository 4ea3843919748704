-- The runs whose events are all gone. Lock: none, for a delete that looks for events would wait for the publisher of the one
-- behind a run. Index: the primary keys. Parameters: ?1 the last number that retention took.
select r.seq from postrider_run r
left join postrider_event e force index (primary) on e.id between r.id - r.length + 1 and r.id
where r.seq <= ?1 and e.id is null
