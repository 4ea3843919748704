-- The runs before a number, the last one first. Lock: none. Index: the primary key of the runs.
-- Parameters: ?1 the number, ?2 the number to stay behind, ?3 the last number that a run can have that has it, ?4 runs at most.
select seq, id, length, late, hex(mark) as mark from postrider_run
where seq < ?3 and seq - length + 1 < ?1 and seq > ?2
order by seq desc limit ?4
