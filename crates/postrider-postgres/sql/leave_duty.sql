-- Gives a duty back. Lock: its row. Index: the primary key.
-- Parameters: $1 name, $2 owner.
update {schema}.duty set owner = null where name = $1::text and owner = $2::text
