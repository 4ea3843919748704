-- The relays that are known. Lock: none. Index: the primary key; the table has a row a relay.
select id, name, host, process, version, started_at, seen_at, runs from postrider_relay order by name, started_at
