-- Writes a note if the duty is still held. Lock: its row. Index: the primary key.
-- Parameters: ?1 name, ?2 owner, ?3 note, ?4 the time.
update postrider_duty set note = ?3 where name = ?1 and owner = ?2 and lease_until > ?4
