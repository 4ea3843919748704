-- Deletes runs. Lock: those rows. Index: the primary key. Parameters: ?1 a JSON array of their last numbers.
delete r from json_table(?1, '$[*]' columns (seq bigint path '$')) c straight_join postrider_run r on r.seq = c.seq
