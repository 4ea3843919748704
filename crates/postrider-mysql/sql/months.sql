-- How the archive is partitioned: into how many, whether by recording, up to when there are months, and whether there is one for
-- all that is later. Lock: none. Index: none, it is the catalogue; the archive's own for whether something is in it.
select count(*) as partitions,
       count(case when p.partition_method <> 'RANGE COLUMNS' or replace(p.partition_expression, '`', '') <> 'recorded_at' then 1 end) as strange,
       count(case when p.partition_description = 'MAXVALUE' then 1 end) as open,
       timestampdiff(microsecond, '1970-01-01 00:00:00', max(
           case when p.partition_description <> 'MAXVALUE'
                then cast(replace(p.partition_description, '''', '') as datetime) end)) as upto,
       exists (select 1 from postrider_archive) as events
from information_schema.partitions p
where p.table_schema = database() and p.table_name = 'postrider_archive' and p.partition_name is not null
