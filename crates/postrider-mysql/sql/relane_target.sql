-- Sets the common position that all lanes are read up to: the last number.
-- From the lowest of the lanes' positions it would repeat, from the highest it would lose.
-- Lock: the subscription's row. Index: the primary keys. Parameters: ?1 subscription.
update postrider_subscription
set target = greatest((select r.seq from postrider_numbering r where r.one = 1),
                      (select max(l.position) from postrider_lane l where l.subscription = ?1))
where name = ?1
