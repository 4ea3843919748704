-- Creates a subscription. Lock: its row. Index: the primary key.
-- Parameters: ?1 name, ?2 streams, ?3 types, ?4 streams as a regular expression, ?5 types as one, ?6 order policy, ?7 on dead,
--   ?8 lanes, ?9 since, ?10 the number it starts after, ?11 the time, ?12 whether it may be replayed.
insert into postrider_subscription (name, streams, types, streams_regexp, types_regexp, order_policy, on_dead, lanes, since,
                                    start_frontier, created_at, replay)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
