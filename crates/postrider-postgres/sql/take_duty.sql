-- Takes a duty or prolongs it; no row while another holds it. Lock: its row. Index: the primary key. The condition is judged by
-- the clock once the row is locked: two that wait for it don't both get it. A lease longer than it was given for is void.
-- Parameters: $1 name, $2 owner, $3 lease in microseconds, $4 the time, if not the database's.
insert into {schema}.duty as d (name, owner, lease_until, lease_for)
values ($1::text, $2::text, coalesce($4::timestamptz, clock_timestamp()) + $3::bigint * interval '1 microsecond',
        $3::bigint * interval '1 microsecond')
on conflict (name) do update
    set owner = excluded.owner, lease_for = excluded.lease_for,
        lease_until = coalesce($4::timestamptz, clock_timestamp()) + excluded.lease_for
    where d.owner is null or d.owner = excluded.owner
       or d.lease_until <= coalesce($4::timestamptz, clock_timestamp())
       or d.lease_until > coalesce($4::timestamptz, clock_timestamp()) + d.lease_for + interval '1 second'
returning d.lease_until - d.lease_for, d.lease_until, d.note
