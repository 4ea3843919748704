-- The holes that are so old that they will not be filled any more, because no transaction has anything in them. Lock: none.
-- Index: the primary keys. It runs as READ UNCOMMITTED: what an open transaction wrote counts. Parameters: ?1 how old, in
-- microseconds.
select h.first_id, h.last_id from postrider_hole h
where h.since < timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) - ?1
  and not exists (select 1 from postrider_arrival a where a.id between h.first_id and h.last_id)
order by h.first_id limit 10000
