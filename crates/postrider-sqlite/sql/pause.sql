-- Pauses a subscription, or lets it go on where nobody is named. Who paused it first stays. Lock: the database's write lock.
-- Index: the primary key. Parameters: ?1 subscription, ?2 who, ?3 why, ?4 the time.
update postrider_subscription
set paused = ?2 is not null,
    paused_at = case when ?2 is null then null when paused then paused_at else ?4 end,
    paused_by = case when ?2 is null then null when paused then paused_by else ?2 end,
    paused_why = case when ?2 is null then null when paused then paused_why else ?3 end
where name = ?1
