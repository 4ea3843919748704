-- What the checks go by. Lock: none. Index: both ends of the log, the primary keys. Parameters: ?1 the time.
select (select json_group_array(name) from (
            select distinct s.name from postrider_subscription s join postrider_lane l on l.subscription = s.name
            where not s.paused
              and (select e.recorded_at from postrider_event e where e.id > l.position order by e.id limit 1) < ?1 - 60000000
              and not (l.lease_owner is not null and l.lease_until > ?1 and l.lease_until <= ?1 + l.lease_for + 1000000))) as unheld,
       (select group_concat(s.name, ', ') from postrider_subscription s join postrider_forgotten f on f.consumer = s.name
        where s.replay and f.handled_at >= (select e.recorded_at from postrider_event e order by e.id limit 1)) as forgetful,
       (select journal_mode from pragma_journal_mode) as journal,
       (select timeout from pragma_busy_timeout) as busy,
       (select page_count from pragma_page_count) * (select page_size from pragma_page_size) as bytes,
       (select freelist_count from pragma_freelist_count) * (select page_size from pragma_page_size) as free_bytes
