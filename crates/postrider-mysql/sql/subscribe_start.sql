-- The number that a subscription starts after. Lock: none. Index: the last number; only a start at a time scans the log, once
-- in the life of a subscription. Parameters: ?1 start (beginning, now, at), ?2 since.
select case ?1
    when 'beginning' then 0
    else coalesce(
        case ?1 when 'at' then (
            select min(r.seq - (r.id - e.id)) - 1
            from postrider_run r straight_join postrider_event e on e.id between r.id - r.length + 1 and r.id
            where e.recorded_at >= '1970-01-01 00:00:00' + interval ?2 microsecond) end,
        (select seq from postrider_numbering where one = 1))
    end as start_frontier
