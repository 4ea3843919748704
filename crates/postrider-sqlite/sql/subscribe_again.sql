-- Gives a subscription its new filter and policies. Lock: the database's write lock. Index: the primary key.
-- Parameters: ?1 name, ?2 streams, ?3 types, ?4 order policy, ?5 on dead, ?6 whether it may be replayed.
update postrider_subscription set streams = ?2, types = ?3, order_policy = ?4, on_dead = ?5, replay = ?6 where name = ?1
