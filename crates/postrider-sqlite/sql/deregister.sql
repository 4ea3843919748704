-- Forgets a relay that has ended. Lock: the database's write lock. Index: the primary key. Parameters: ?1 id.
delete from postrider_relay where id = ?1
