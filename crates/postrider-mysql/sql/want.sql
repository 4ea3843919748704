-- Says that a relay found no lane free while another holds at least two more than it: for 10 seconds that one is told to give
-- one up, and nobody with more lanes than this relay gets one. Lock: the subscription's row. Index: the primary key.
-- Parameters: ?1 subscription, ?2 how many lanes the relay holds, ?3 the time.
update postrider_subscription set wanted_with = ?2, wanted_until = ?3 + 10000000 where name = ?1
