-- Writes a note if the duty is still held. Lock: its row. Index: the primary key.
-- Parameters: $1 name, $2 owner, $3 note, $4 the time, if not the database's.
update {schema}.duty set note = $3::text
where name = $1::text and owner = $2::text and lease_until > coalesce($4::timestamptz, clock_timestamp())
