-- The unique indexes of a table of the application on one column alone. Lock: none. The catalog only.
-- Parameters: ?1 table, ?2 database, if not this one, ?3 column.
select s.index_name as name
from information_schema.statistics s
where s.table_name = ?1 and s.table_schema = coalesce(?2, database()) and s.non_unique = 0
group by s.index_name
having count(*) = 1 and max(s.column_name) = ?3
