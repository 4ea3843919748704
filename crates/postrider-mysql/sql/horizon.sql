-- Up to which number every subscription had settled everything by a time: the smallest over the lanes that each had
-- then. Each generation of lanes begins with a row a lane, so none is missed. Null while there is no subscription.
-- Lock: none of its own. Index: settled_batch_time. Parameters: ?1 cutoff.
with recursive number (n) as (select 0 union all select n + 1 from number where n + 1 < 256),
generation (subscription, start_frontier, lanes) as (
    select s.name, s.start_frontier, (
        select b.lanes from postrider_settled_batch b
        where b.subscription = s.name and b.settled_at <= ?1 order by b.settled_at desc, b.id desc limit 1)
    from postrider_subscription s
)
select min(reached) as horizon from (
    select g.start_frontier as reached from generation g where g.lanes is null
    union all
    select coalesce((
        select b.last_id from postrider_settled_batch b
        where b.subscription = g.subscription and b.settled_at <= ?1 and b.lanes = g.lanes and b.lane = number.n
        order by b.settled_at desc, b.id desc limit 1), 0)
    from generation g join number on number.n < g.lanes) as lanes
