-- Makes a duty that nobody holds; one that is there stays as it is. Lock: its row. Index: the primary key. Parameters: ?1 name.
insert ignore into postrider_duty (name, lease_until, lease_for) values (?1, 0, 0)
