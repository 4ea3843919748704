-- What a table of the application is like: whether it is there, which columns it has and which of them need a value, and whether it
-- is one of ours. Lock: none. Catalogs only.
-- Parameters: $1 its quoted name.
select t.oid is not null as there,
       coalesce((select array_agg(a.attname::text) from pg_attribute a
                 where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped), '{}') as columns,
       coalesce((select array_agg(a.attname::text) from pg_attribute a
                 where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and a.attnotnull and not a.atthasdef
                   and a.attidentity = ''), '{}') as needed,
       exists (select from pg_class c where c.oid = t.oid and c.relnamespace = to_regnamespace('{schema}')) as ours
from (select to_regclass($1::text) as oid) as t
