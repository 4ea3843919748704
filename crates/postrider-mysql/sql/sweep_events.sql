-- Deletes events. Lock: those rows. Index: the primary key of the log. Parameters: ?1 a JSON array of [number, id].
delete e from json_table(?1, '$[*]' columns (id bigint path '$[1]')) c straight_join postrider_event e on e.id = c.id
