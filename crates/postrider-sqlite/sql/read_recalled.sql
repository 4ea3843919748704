-- Whether a subscription wants its lanes back. Lock: none. Index: the primary key. Parameters: ?1 subscription.
select paused or (lanes_next is not null and target is null) as recalled from postrider_subscription where name = ?1
