-- Claims one free lane. Lock: the database's write lock. Index: the primary key.
-- A lease that lasts longer from now than it was given for is void: the clock went back.
-- While lanes change, only those that have not reached the common position are to be had.
-- While somebody with so many lanes wants one (see want.sql), who holds more gets none; the lanes are counted only then.
-- Parameters: ?1 subscription, ?2 owner, ?3 lease in microseconds, ?4 the time.
update postrider_lane
set lease_owner = ?2, lease_for = ?3, lease_until = ?4 + ?3, lease_epoch = lease_epoch + 1,
    claims_since_settle = claims_since_settle + 1, reading = 0, away = null, away_since = null
where subscription = ?1 and lane = (
    select l.lane from postrider_lane l join postrider_subscription s on s.name = l.subscription
    where l.subscription = ?1 and not s.paused
      and (s.lanes_next is null or (s.target is not null and l.position <> s.target))
      and (l.lease_owner is null or l.lease_until <= ?4 or l.lease_until > ?4 + l.lease_for + 1000000)
      and (s.wanted_until is null or s.wanted_until <= ?4 or s.wanted_until > ?4 + 11000000
           or s.wanted_with >= (select count(*) from postrider_lane o
                                where o.subscription = ?1 and o.lease_owner = ?2 and o.lease_until > ?4
                                  and o.lease_until <= ?4 + o.lease_for + 1000000))
    order by l.lease_until, l.lane limit 1)
returning lane, lease_epoch, lease_until, position, claims_since_settle
