-- Where events stand, from the same view that people query. Lock: none. Index: the primary key of the log.
-- {where} is what was asked for. Parameters: ?1 the time, if not the database's, ?2 after this id, ?3 limit,
--   ?4 subscription, ?5 event id, ?6 state.
with clock (now) as materialized (
    select coalesce(?1, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000)
)
select id, event_id, subscription, state, attempts, next_retry_at, last_attempt_at, delivered_at, delivered_by,
       case when leased then lease_owner end as lease_owner, case when leased then lease_until end as lease_until,
       error_code, error_message
from (select v.*, coalesce(settled_state, case when leased and id <= reading then 'processing' else 'pending' end) as state
      from (select e.*, e.lease_owner is not null and e.lease_until > (select now from clock)
                        and e.lease_until <= (select now from clock) + e.lease_for + 1000000 as leased
            from postrider_event_standing e) v)
where id > ?2 {where}
order by id, subscription limit ?3
