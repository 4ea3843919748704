-- Writes down what an operator did. Lock: none but its row. Index: none.
-- Parameters: ?1 the time, ?2 who, ?3 what, ?4 why, ?5 subscription, ?6 event id.
insert into postrider_audit (at, who, what, why, subscription, event_id) values (?1, ?2, ?3, ?4, ?5, ?6)
