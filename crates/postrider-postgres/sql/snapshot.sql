-- Who is running: a snapshot, and an xid taken after it that bounds those it does not list.
select pg_current_snapshot()::text as snapshot, pg_current_xact_id()::text as bound
