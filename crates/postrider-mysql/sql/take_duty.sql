-- Takes a duty whose row is locked by now, or prolongs it; no row while another holds it. Lock: its row. Index: the primary
-- key. A lease longer than it was given for is void.
-- Parameters: ?1 name, ?2 owner, ?3 lease in microseconds, ?4 the time.
update postrider_duty
set lease_until = ?4 + ?3, owner = ?2, lease_for = ?3
where name = ?1 and (owner is null or owner = ?2 or lease_until <= ?4 or lease_until > ?4 + lease_for + 1000000)
