-- The end of the log, how far the furthest lane has read, and the highest id that was used. Lock: none. Index: the last rows of
-- the log.
select (select seq from postrider_numbering where one = 1) as log_end,
       coalesce((select max(position) from postrider_lane), 0) as furthest,
       greatest((select reached from postrider_numbering where one = 1), coalesce((select max(id) from postrider_event), 0)) as used
