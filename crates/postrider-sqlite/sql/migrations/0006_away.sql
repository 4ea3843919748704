-- What the holder of a lane says of its destination: why it is away, and since when; null while it is not. It counts as long as the lease does.
alter table postrider_lane add column away text;
alter table postrider_lane add column away_since integer;
