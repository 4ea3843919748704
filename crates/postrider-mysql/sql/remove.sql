-- Removes a subscription; its lanes, deliveries and batches go in the same transaction. Lock: its row. Index: the primary key.
-- Parameters: ?1 subscription.
delete from postrider_subscription where name = ?1
