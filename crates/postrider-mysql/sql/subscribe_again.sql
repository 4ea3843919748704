-- Gives a subscription its new filter and policies. Lock: its row. Index: the primary key.
-- Parameters: ?1 name, ?2 streams, ?3 types, ?4 streams as a regular expression, ?5 types as one, ?6 order policy, ?7 on dead,
--   ?8 whether it may be replayed.
update postrider_subscription
set streams = ?2, types = ?3, streams_regexp = ?4, types_regexp = ?5, order_policy = ?6, on_dead = ?7, replay = ?8
where name = ?1
