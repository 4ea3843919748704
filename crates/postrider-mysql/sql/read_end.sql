-- How far a read gets, and over how many rows. Lock: none. Index: the primary key of the numbers.
-- Parameters: ?1 position, ?2 rows at most, ?3 the last number it is to reach.
select max(seq) as last_seq, count(*) as scanned
from (select seq from postrider_numbered where seq > ?1 and seq <= ?3 order by seq limit ?2) n
