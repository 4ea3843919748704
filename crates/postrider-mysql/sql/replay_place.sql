-- Places those that stay anew, when what was in front of them has been forgotten: the trigger says when each is found. Lock: those rows.
-- Index: the primary key. Parameters: ?1 subscription, ?2 the number.
update postrider_delivery set look_at = 0 where subscription = ?1 and id > ?2 and holds = true order by id
