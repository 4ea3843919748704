-- Wakes sleeping relays without an event. Lock: the one row. Index: the primary key.
update postrider_bell set rings = rings + 1 where one = 1
