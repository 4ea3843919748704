-- No order: each row stands for itself; one that waited under an earlier policy waits no more. Index: the primary key.
select k.id, k.event_id, k.state, k.attempts, k.first_failed_at, k.error_code, k.past, false as blocked
from json_table(?6, '$[*]' columns (id bigint path '$')) c
straight_join postrider_delivery k on k.subscription = ?1 and k.id = c.id
