-- How a reader stands with its lane: whether that is where the reader believes it to be, and whether the subscription wants it back.
-- It stands there under the reader's epoch, also when it was given back since and nobody has claimed it. Asked in the snapshot of
-- the read itself: a file that was set back under a running relay has another past. Lock: none. Index: the primary keys.
-- Parameters: ?1 subscription, ?2 lane, ?3 epoch, ?4 where the lease says that it stands, ?5 from where is read.
select exists (select 1 from postrider_lane l
               where l.subscription = ?1 and l.lane = ?2 and l.lease_epoch = ?3 and l.position in (?4, ?5)) as stands,
       paused or (lanes_next is not null and target is null) as recalled
from postrider_subscription where name = ?1
