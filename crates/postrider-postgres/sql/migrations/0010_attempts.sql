-- The last tries of a delivery that failed, as a JSON array, the oldest first; null for one that never failed. At most ten, and 32 KiB.
-- Publishers never touch this table; relays wait for a moment, and those of before go on without a word of it.
alter table {schema}.delivery add column past text;
