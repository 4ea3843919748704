-- Forgets relays that ended without a word, also those seen so far in the future, by a clock that was set back since. Lock: the database's
-- write lock. Index: none; the table has a row a relay. Parameters: ?1 those not seen since, ?2 those seen after it.
delete from postrider_relay where seen_at < ?1 or seen_at > ?2
