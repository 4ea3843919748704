-- Deletes settled batches. Lock: those rows. Index: the primary key. Parameters: ?1 a JSON array of their ids.
delete b from json_table(?1, '$[*]' columns (id bigint path '$')) c straight_join postrider_settled_batch b on b.id = c.id
