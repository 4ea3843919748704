-- The runs that follow a number, in their order. Numbers are committed in their order, so a run below another that was seen can't
-- appear later. Lock: none. Index: the primary key of the runs.
-- Parameters: ?1 number, ?2 the last number that is wanted, ?3 runs at most.
select seq, id, length, late, hex(mark) as mark from postrider_run where seq > ?1 and seq - length < ?2 order by seq limit ?3
