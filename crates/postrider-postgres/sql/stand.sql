-- A position at which everything that is visible now counts as read, up to the sequence's last value: see read.sql. It must be
-- the first statement of the transaction that writes the position down: so the position is of the same database's past, and
-- the xid in the select list is taken after the snapshot.
-- Parameters: $1 subscription whose frontiers it must not be behind, $2 a time: if given, what was recorded then or
--   later is not counted as read.
select pg_current_snapshot()::text as snapshot,
       case when $2::timestamptz is null
            then greatest(coalesce((select max(id) from {schema}.event where id <= (select case when is_called then last_value else last_value - 1 end from {schema}.event_id)), 0),
                          coalesce((select max(frontier) from {schema}.lane where subscription = $1::text), 0))
            else coalesce((select min(id) - 1 from {schema}.event where recorded_at >= $2::timestamptz
                           and id <= (select case when is_called then last_value else last_value - 1 end from {schema}.event_id)),
                          (select max(id) from {schema}.event where id <= (select case when is_called then last_value else last_value - 1 end from {schema}.event_id)), 0)
       end as frontier,
       pg_current_xact_id()::text as bound, {schema}.this_system() as system
