-- The database's clock, in microseconds since 1970. Lock, index: none.
select timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) as now
