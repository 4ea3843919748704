-- Forgets holes. Lock: their rows. Index: the primary key. Parameters: ?1 a JSON array of [first, last].
delete h from json_table(?1, '$[*]' columns (first_id bigint path '$[0]', last_id bigint path '$[1]')) c
straight_join postrider_hole h on h.first_id = c.first_id
where h.last_id = c.last_id
