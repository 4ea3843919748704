-- A position at which everything that is visible now counts as read. It must run alone, in a transaction that has
-- no xid yet: the xid in the select list is then taken after the snapshot.
-- Parameters: $1 subscription whose frontiers it must not be behind, $2 a time: if given, what was recorded then or
--   later is not counted as read.
select pg_current_snapshot()::text as snapshot,
       case when $2::timestamptz is null
            then greatest(coalesce((select max(id) from {schema}.event), 0),
                          coalesce((select max(frontier) from {schema}.lane where subscription = $1::text), 0))
            else coalesce((select min(id) - 1 from {schema}.event where recorded_at >= $2::timestamptz),
                          (select max(id) from {schema}.event), 0)
       end as frontier,
       pg_current_xact_id()::text as bound
