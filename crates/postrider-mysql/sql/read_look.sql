-- Whether a subscription wants its lanes back, or has set this one back to be read again, and the runs that follow a number: a row
-- each, or one with none. Lock: none. Index: the primary keys. Runs as in read_runs.sql.
-- Parameters: ?1 subscription, ?2 lane, ?3 where the lease says that it stands, ?4 number, ?5 the last number that is wanted, ?6 runs
--   at most.
select s.paused or (s.lanes_next is not null and s.target is null)
           or exists (select 1 from postrider_lane l where l.subscription = ?1 and l.lane = ?2 and l.position < ?3) as recalled,
       r.seq, r.id, r.length, r.late
from postrider_subscription s
left join (select seq, id, length, late from postrider_run where seq > ?4 and seq - length < ?5 order by seq limit ?6) r on true
where s.name = ?1
order by r.seq
