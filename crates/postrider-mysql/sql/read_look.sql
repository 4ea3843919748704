-- Whether a lane stands as its holder believes, whether its subscription wants it back, and the runs that follow a number: a row
-- each, or one with none; no row if the lane is gone. A lane that was given back has no owner; what is read ahead is read from where
-- the lane will stand. Lock: none. Index: the primary keys. Runs as in read_runs.sql.
-- Parameters: ?1 subscription, ?2 lane, ?3 where the lease says that it stands, ?4 number, ?5 the last number that is wanted, ?6 runs
--   at most, ?7 epoch, ?8 owner.
select l.lease_epoch = ?7 and (l.lease_owner is null or l.lease_owner = ?8) and l.position in (?3, ?4) as sound,
       s.paused or (s.lanes_next is not null and s.target is null) as recalled,
       r.seq, r.id, r.length, r.late, r.mark
from postrider_lane l
join postrider_subscription s on s.name = l.subscription
left join (select seq, id, length, late, hex(mark) as mark from postrider_run
           where seq > ?4 and seq - length < ?5 order by seq limit ?6) r on true
where l.subscription = ?1 and l.lane = ?2
order by r.seq
