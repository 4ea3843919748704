-- The database's clock, in microseconds since 1970. Lock, index: none.
select cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000
