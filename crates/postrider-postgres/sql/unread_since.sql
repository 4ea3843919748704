-- When the first event was recorded that some lane of a subscription has not passed, whatever its filter. Lock: none.
-- Index: lane_pkey, then event_pkey from the lowest frontier on, one row. Parameters: $1 subscription.
select e.recorded_at from {schema}.event e
where e.id > (select min(l.frontier) from {schema}.lane l where l.subscription = $1::text)
order by e.id limit 1
