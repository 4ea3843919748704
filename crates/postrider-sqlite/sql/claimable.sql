-- Whether a claim has anything to do: asked first, because a claim that finds nothing must not take the write lock.
-- Lock: none. Index: the primary keys. Parameters: ?1 subscription, ?2 the time, if not the database's.
with clock (now) as (
    select coalesce(?2, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000)
)
select s.lanes_next is not null as relaning,
       not s.paused and exists (
           select 1 from postrider_lane l
           where l.subscription = s.name
             and (l.lease_owner is null or l.lease_until <= clock.now or l.lease_until > clock.now + l.lease_for + 1000000)) as free
from postrider_subscription s, clock where s.name = ?1
