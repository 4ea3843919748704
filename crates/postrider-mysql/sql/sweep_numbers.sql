-- Deletes the numbers of events that are gone. Lock: those rows. Index: the primary key. Parameters: ?1 a JSON array of numbers.
delete n from json_table(?1, '$[*]' columns (seq bigint path '$')) c straight_join postrider_numbered n on n.seq = c.seq
