-- Records one event that has nothing but the usual, with an id that was made for it a moment ago: as record.sql, with half
-- the parameters and without asking whether the id is taken.
insert into {schema}.event (event_id, stream, event_type, aggregate_type, aggregate_id, headers, payload)
values ($1, $2, $3, $4, $5, $6::text::json, $7::text::json)
