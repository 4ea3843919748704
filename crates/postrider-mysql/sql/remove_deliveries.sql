-- Deletes the deliveries of a subscription. Lock: those rows. Index: the primary key. Parameters: ?1 subscription.
delete from postrider_delivery where subscription = ?1
