-- Waits for the settles of a subscription that are under way, and keeps others from beginning: who changes open deliveries beside them
-- would count on rows that the other lets go. Lock: its lanes' rows. Index: the primary key. Parameters: ?1 subscription.
select lane from postrider_lane where subscription = ?1 order by lane for update
