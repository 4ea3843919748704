-- Takes a duty or prolongs it; no row while another holds it. Lock: the database's write lock. Index: the primary key. A lease
-- longer than it was given for is void.
-- Parameters: ?1 name, ?2 owner, ?3 lease in microseconds, ?4 the time.
insert into postrider_duty as d (name, owner, lease_until, lease_for) values (?1, ?2, ?4 + ?3, ?3)
on conflict (name) do update
    set owner = excluded.owner, lease_until = excluded.lease_until, lease_for = excluded.lease_for
    where d.owner is null or d.owner = excluded.owner
       or d.lease_until <= ?4 or d.lease_until > ?4 + d.lease_for + 1000000
returning lease_until, note
