-- Deletes the deliveries of a subscription. Lock: the database's write lock. Index: the primary key. Parameters: ?1 subscription.
delete from postrider_delivery where subscription = ?1
