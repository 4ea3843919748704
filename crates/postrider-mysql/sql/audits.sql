-- What operators did, newest first. Lock: none. Index: the primary key. Parameters: ?1 limit.
select id, at, who, what, why, subscription, event_id from postrider_audit order by id desc limit ?1
