-- Forgets a relay that has ended, or was not seen for long. Lock: its row. Index: the primary key. Parameters: ?1 id.
delete from postrider_relay where id = ?1
