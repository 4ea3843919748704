-- Forgets relays that ended without a word. Lock: the database's write lock. Index: none; the table has a row a relay.
-- Parameters: ?1 those not seen since.
delete from postrider_relay where seen_at < ?1
