-- Locks a subscription, alone: who changes it, its lanes or its history. Lock: its row. Index: the primary key.
-- Parameters: ?1 subscription.
select name from postrider_subscription where name = ?1 for update
