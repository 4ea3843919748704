-- The end of the log, and how far the furthest lane has read. Lock: none. Index: the last row of the log.
select max(coalesce((select seq from sqlite_sequence where name = 'postrider_event'), 0),
           coalesce((select max(id) from postrider_event), 0)) as log_end,
       coalesce((select max(position) from postrider_lane), 0) as furthest
