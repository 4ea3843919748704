-- Sets the common position that all lanes are read up to: the end of the log.
-- From the lowest of the lanes' positions it would repeat, from the highest it would lose.
-- Lock: the database's write lock. Index: the last row of the log. Parameters: ?1 subscription.
update postrider_subscription
set target = max(coalesce((select seq from sqlite_sequence where name = 'postrider_event'), 0),
                 coalesce((select max(id) from postrider_event), 0),
                 (select max(position) from postrider_lane where subscription = ?1))
where name = ?1
