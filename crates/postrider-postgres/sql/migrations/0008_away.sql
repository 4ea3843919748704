-- What the holder of a lane says of its destination. Publishers never touch this table; relays wait for a moment, and those of before go on
-- without a word of it.

-- Why the destination is away, and since when; null while it is not. It is the holder's word: it counts as long as the lease does.
alter table {schema}.lane add column away text, add column away_since timestamptz;
