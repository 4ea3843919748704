-- Creates a subscription. Lock: the database's write lock. Index: the last row of the log; only a start at a time
-- scans it, once in the life of a subscription.
-- Parameters: ?1 name, ?2 streams, ?3 types, ?4 order policy, ?5 on dead, ?6 lanes, ?7 start (beginning, now, at),
--   ?8 since, ?9 the time, ?10 whether it may be replayed.
insert into postrider_subscription (name, streams, types, order_policy, on_dead, lanes, since, start_frontier, created_at,
                                    replay)
values (?1, ?2, ?3, ?4, ?5, ?6, ?8, case ?7
    when 'beginning' then 0
    else coalesce(
        case ?7 when 'at' then (select min(id) - 1 from postrider_event where recorded_at >= ?8) end,
        max(coalesce((select seq from sqlite_sequence where name = 'postrider_event'), 0),
            coalesce((select max(id) from postrider_event), 0)))
    end, ?9, ?10)
returning start_frontier
