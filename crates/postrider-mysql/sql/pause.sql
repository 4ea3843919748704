-- Pauses a subscription, or lets it go on. Lock: its row. Index: the primary key.
-- Parameters: ?1 subscription, ?2 whether it is paused.
update postrider_subscription set paused = ?2 where name = ?1
