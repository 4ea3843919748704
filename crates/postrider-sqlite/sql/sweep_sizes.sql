-- How large the events are that are about to be filed. Lock: none of its own. Index: the primary key of the log; a size is in
-- the head of a row, so that wide values are not read.
-- Parameters: ?1 a JSON array of ids.
select coalesce(octet_length(payload), 0) + coalesce(octet_length(content), 0) + coalesce(octet_length(headers), 0) as size
from postrider_event where id in (select value from json_each(?1)) order by id
