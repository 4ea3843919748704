-- The columns of a table of the application: their names and types, and which need a value. Lock: none. The catalog only.
-- Parameters: ?1 table, ?2 schema.
select name, type, "notnull" <> 0 and dflt_value is null and pk = 0 as needed from pragma_table_info(?1, ?2)
