-- Forgets a delivery that the database does not let be changed, so that a dead one can take its place.
-- Lock: the database's write lock. Index: the primary key. Parameters: ?1 subscription, ?2 id.
delete from postrider_delivery where subscription = ?1 and id = ?2
