-- Which of these transactions are still running.
-- Parameters: $1 xids.
select array_agg(x::text) as running from unnest($1::text[]::xid8[]) as c (x)
where not pg_visible_in_snapshot(x, (select pg_current_snapshot()))
