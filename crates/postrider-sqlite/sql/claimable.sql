-- Whether a claim has anything to do: asked first, because a claim that finds nothing must not take the write lock.
-- While somebody with so many lanes wants one, who holds more gets none. A claim is `hungry` if all lanes are held, another
-- holds at least two more than it, and nobody has said so of late for no more lanes: see want.sql.
-- Lock: none. Index: the primary keys. Parameters: ?1 subscription, ?2 the time, if not the database's, ?3 owner.
with clock (now) as materialized (
    select coalesce(?2, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000)
), holder (owner, lanes) as materialized (
    select l.lease_owner, count(*) from postrider_lane l, clock
    where l.subscription = ?1 and l.lease_owner is not null and l.lease_until > clock.now
      and l.lease_until <= clock.now + l.lease_for + 1000000
    group by l.lease_owner
), standing (own, most, held) as materialized (
    select coalesce(max(lanes) filter (where owner = ?3), 0), coalesce(max(lanes) filter (where owner <> ?3), 0),
           coalesce(sum(lanes), 0)
    from holder
)
select s.lanes_next is not null as relaning,
       not s.paused
           and not (coalesce(s.wanted_until > clock.now and s.wanted_until <= clock.now + 11000000, 0)
                    and standing.own > s.wanted_with)
           and exists (
               select 1 from postrider_lane l
               where l.subscription = s.name
                 and (l.lease_owner is null or l.lease_until <= clock.now or l.lease_until > clock.now + l.lease_for + 1000000)) as free,
       not s.paused and s.lanes_next is null and standing.held = s.lanes and standing.most >= standing.own + 2
           and (s.wanted_until is null or s.wanted_with > standing.own
                or s.wanted_until <= clock.now + 5000000 or s.wanted_until > clock.now + 11000000) as hungry,
       standing.own as own
from postrider_subscription s, clock, standing where s.name = ?1
