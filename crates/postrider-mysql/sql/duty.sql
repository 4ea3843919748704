-- A duty, locked. Lock: its row. Index: the primary key. Parameters: ?1 name.
select owner, lease_until, lease_for, note from postrider_duty where name = ?1 for update
