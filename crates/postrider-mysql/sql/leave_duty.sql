-- Gives a duty back. Lock: its row. Index: the primary key. Parameters: ?1 name, ?2 owner.
update postrider_duty set owner = null where name = ?1 and owner = ?2
