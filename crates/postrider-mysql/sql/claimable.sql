-- Whether a claim has anything to do: asked first, because a claim that finds nothing must not lock anything.
-- While somebody with so many lanes wants one, who holds more gets none. A claim is `hungry` if all lanes are held, another
-- holds at least two more than it, and nobody has said so of late for no more lanes: see want.sql.
-- Lock: none. Index: the primary keys. Parameters: ?1 subscription, ?2 the time, if not the database's, ?3 owner.
with clock (now) as (
    select coalesce(?2, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)))
), holder (owner, lanes) as (
    select l.lease_owner, count(*) from postrider_lane l join clock
    where l.subscription = ?1 and l.lease_owner is not null and l.lease_until > clock.now
      and l.lease_until <= clock.now + l.lease_for + 1000000
    group by l.lease_owner
), standing (own, most, held) as (
    select cast(coalesce(max(case when owner = ?3 then lanes end), 0) as signed),
           cast(coalesce(max(case when owner <> ?3 then lanes end), 0) as signed),
           cast(coalesce(sum(lanes), 0) as signed)
    from holder
)
select s.lanes_next is not null as relaning,
       not s.paused
           and not (coalesce(s.wanted_until > clock.now and s.wanted_until <= clock.now + 11000000, false)
                    and standing.own > s.wanted_with)
           and exists (
               select 1 from postrider_lane l
               where l.subscription = s.name
                 and (l.lease_owner is null or l.lease_until <= clock.now or l.lease_until > clock.now + l.lease_for + 1000000)) as free,
       not s.paused and s.lanes_next is null and standing.held = s.lanes and standing.most >= standing.own + 2
           and (s.wanted_until is null or s.wanted_with > standing.own
                or s.wanted_until <= clock.now + 5000000 or s.wanted_until > clock.now + 11000000) as hungry,
       standing.own as own
from postrider_subscription s join clock join standing where s.name = ?1
