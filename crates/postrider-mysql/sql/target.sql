-- The columns of a table of the application: their names and types, and which need a value. Lock: none. The catalog only.
-- Parameters: ?1 table, ?2 database, if not this one.
select c.column_name as name, c.data_type as kind,
       c.is_nullable = 'NO' and c.column_default is null and c.extra not like '%auto_increment%'
           and c.extra not like '%GENERATED%' as needed
from information_schema.columns c
where c.table_name = ?1 and c.table_schema = coalesce(?2, database())
order by c.ordinal_position
