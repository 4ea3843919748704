-- What the checks go by, in one look. Lock: none. Index: event_pkey at both ends, lane_pkey; the rest are catalogs.
-- Parameters: $1 the time, if not the database's, $2 this cluster.
with clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
), unheld as (
    select l.subscription from clock cross join {schema}.subscription s
    join {schema}.lane l on l.subscription = s.name
    cross join lateral (select e.recorded_at from {schema}.event e where e.id > l.frontier order by e.id limit 1) as e
    where not s.paused and e.recorded_at < clock.now - interval '1 minute'
      and not (l.lease_owner is not null and l.lease_until > clock.now
               and l.lease_until <= clock.now + l.lease_for + interval '1 second')
)
select clock_timestamp() as database_now,
       (select max(version) from {schema}.migration) as version,
       has_table_privilege('{schema}.event', 'insert') as may_record,
       has_table_privilege('{schema}.event', 'select') and has_table_privilege('{schema}.lane', 'update')
           and has_table_privilege('{schema}.settled_batch', 'insert') and has_table_privilege('{schema}.delivery', 'insert') and has_table_privilege('{schema}.delivery', 'update')
           and has_table_privilege('{schema}.delivery', 'delete')
           and has_table_privilege('{schema}.inbox', 'insert') and has_table_privilege('{schema}.audit', 'insert')
           and has_sequence_privilege('{schema}.bell', 'update')
           and has_function_privilege('{schema}.sweep(boolean, timestamptz, timestamptz, bigint, integer)', 'execute') as may_relay,
       (select extract(epoch from clock_timestamp() - min(a.xact_start))::bigint from pg_stat_activity a
        where a.xact_start is not null and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
          and a.datname = current_database()) as oldest_transaction,
       (select extract(epoch from clock_timestamp() - min(p.prepared))::bigint from pg_prepared_xacts p
        where p.database = current_database()) as oldest_prepared,
       (select last_value from {schema}.event_id) as sequence,
       (select seqcache from pg_sequence where seqrelid = '{schema}.event_id'::regclass) as sequence_cache,
       greatest((select max(id) from {schema}.event), (select max(frontier) from {schema}.lane), 0) as highest,
       (select json_agg(distinct subscription)::text from unheld) as unheld,
       (select string_agg(s.name, ', ') from {schema}.subscription s join {schema}.forgotten f on f.consumer = s.name
        where s.replay
          and f.handled_at >= (select e.recorded_at from {schema}.event e order by e.id limit 1)) as forgetful,
       (select string_agg(t.relname || ' (' || t.n_dead_tup || ')', ', ') from pg_stat_user_tables t
        where t.schemaname = '{schema_name}' and t.relname in ('lane', 'delivery', 'settled_batch')
          and t.n_dead_tup > 10000 and t.n_dead_tup > t.n_live_tup) as bloated,
       (select string_agg(distinct l.subscription, ', ') from {schema}.lane l where l.system <> $2::bigint) as moved
