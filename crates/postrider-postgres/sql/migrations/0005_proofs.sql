-- What statements prove, and keys that fit into an index.

-- A key as deliveries keep it. An index entry has room for some 2,700 bytes, and a plain insert can make a key longer than that:
-- its row could never be written, and its lane would stand still. A long key is kept as two hashes of it. Lanes go by the whole
-- key, as before. Should two long keys ever have the same hashes, the one would wait for the other, and nothing else.
create function {schema}.short_key(key text) returns text language sql immutable strict parallel safe as $$
    select case when octet_length(key) <= 1000 then key
                else 'long key ' || hashtextextended(key collate "C", 1) || ' ' || hashtextextended(key collate "C", 2) end
$$;

update {schema}.delivery set key = {schema}.short_key(key) where holds and octet_length(key) > 1000;

-- Whether the log still lives where a store got to know it: the last stay that was written down, in this very cluster. A dump that
-- was restored elsewhere, behind the same address, has the stays of its origin. It reads a row and the control file: 20 µs.
create function {schema}.is_at(stay bigint) returns boolean language sql stable as $$
    select exists (select from (select c.system, c.identifier from {schema}.cluster c
                                order by c.number desc, c.since desc limit 1) as latest
                   where latest.system = stay and latest.identifier = (select system_identifier from pg_control_system()))
$$;
