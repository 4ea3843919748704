-- What the checks go by. Lock: none. Index: both ends of the log, the primary keys. Parameters: ?1 the time.
select (select cast(json_arrayagg(u.name) as char)
        from (select distinct s.name
              from postrider_subscription s join postrider_lane l on l.subscription = s.name
              where not s.paused
                and (select timestampdiff(microsecond, '1970-01-01 00:00:00', e.recorded_at)
                     from postrider_run r straight_join postrider_event e on e.id between r.id - r.length + 1 and r.id
                     where r.seq = postrider_run_at(l.position + 1) and r.seq - (r.id - e.id) > l.position
                     order by e.id limit 1) < ?1 - 60000000
                and not (l.lease_owner is not null and l.lease_until > ?1 and l.lease_until <= ?1 + l.lease_for + 1000000)) u) as unheld,
       (select group_concat(s.name order by s.name separator ', ')
        from postrider_subscription s join postrider_forgotten f on f.consumer = s.name
        where s.replay and f.handled_at >= (
            select timestampdiff(microsecond, '1970-01-01 00:00:00', e.recorded_at)
            from postrider_event e order by e.id limit 1)) as forgetful,
       (select count(*) from postrider_hole) as holes,
       (select count(*) from information_schema.tables t
        where t.table_schema = database() and t.table_name like 'postrider\_%' and t.table_type = 'BASE TABLE'
          and t.engine <> 'InnoDB') as strangers,
       @@global.time_zone as zone, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) as clock,
       @@innodb_autoinc_lock_mode as autoinc, @@auto_increment_increment as step, @@log_bin as logging,
       @@binlog_format as format, @@max_allowed_packet as packet, @@innodb_lock_wait_timeout as patience
