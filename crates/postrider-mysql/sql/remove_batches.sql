-- Deletes the history of a subscription. Lock: those rows. Index: settled_batch_range. Parameters: ?1 subscription.
delete from postrider_settled_batch where subscription = ?1
