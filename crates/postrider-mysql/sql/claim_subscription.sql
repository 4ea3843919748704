-- Keeps a subscription as it is while one of its lanes is claimed, and while retention chooses. Lock: its row, shared.
-- Index: the primary key. Parameters: ?1 subscription.
select lanes_next is not null as relaning from postrider_subscription where name = ?1 lock in share mode
