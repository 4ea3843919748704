-- The lanes that a claim may try, the one that was free longest first. Lock: none. Index: the primary key.
-- While lanes change, only those that have not reached the common position are to be had.
-- While somebody with so many lanes wants one (see want.sql), who holds more gets none.
-- Parameters: ?1 subscription, ?2 owner, ?3 the time.
select l.lane from postrider_lane l join postrider_subscription s on s.name = l.subscription
where l.subscription = ?1 and not s.paused
  and (s.lanes_next is null or (s.target is not null and l.position <> s.target))
  and (l.lease_owner is null or l.lease_until <= ?3 or l.lease_until > ?3 + l.lease_for + 1000000)
  and (s.wanted_until is null or s.wanted_until <= ?3 or s.wanted_until > ?3 + 11000000
       or s.wanted_with >= (select count(*) from postrider_lane o
                            where o.subscription = ?1 and o.lease_owner = ?2 and o.lease_until > ?3
                              and o.lease_until <= ?3 + o.lease_for + 1000000))
order by l.lease_until, l.lane
