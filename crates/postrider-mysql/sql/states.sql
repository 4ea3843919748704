-- Where events stand, from the same view that people query. Lock: none. Index: the primary key of the log.
-- {where} is what was asked for. Parameters: ?1 the time, ?2 after this id, ?3 limit, ?4 subscription, ?5 event id, ?6 state,
--   ?7 the lowest place in the table of what comes after.
select v.id, v.event_id, v.subscription, v.state, v.attempts, v.next_retry_at, v.last_attempt_at, v.delivered_at, v.delivered_by,
       case when v.leased then v.lease_owner end as lease_owner, case when v.leased then v.lease_until end as lease_until,
       v.error_code, v.error_message
from (select e.id, e.event_id, e.subscription, e.attempts, e.next_retry_at, e.last_attempt_at, e.delivered_at, e.delivered_by,
             e.lease_owner, e.lease_until, e.error_code, e.error_message,
             e.lease_owner is not null and e.lease_until > ?1 and e.lease_until <= ?1 + e.lease_for + 1000000 as leased,
             coalesce(e.settled_state,
                      case when e.lease_owner is not null and e.lease_until > ?1
                                and e.lease_until <= ?1 + e.lease_for + 1000000 and e.id <= e.reading
                           then 'processing' else 'pending' end) as state
      from postrider_event_standing e where e.log_id >= ?7 and e.id > ?2 {narrowed}) v
where true {where}
order by v.id, v.subscription limit ?3
