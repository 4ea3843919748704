-- Makes a relay known, or says that it is still there. Lock: its row. Index: the primary key.
-- Parameters: ?1 id, ?2 name, ?3 host, ?4 process, ?5 version, ?6 runs, ?7 the time.
insert into postrider_relay (id, name, host, process, version, started_at, seen_at, runs) values (?1, ?2, ?3, ?4, ?5, ?7, ?7, ?6)
on duplicate key update seen_at = values(seen_at), runs = values(runs)
