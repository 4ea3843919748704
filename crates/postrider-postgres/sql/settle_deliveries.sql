, deliveries as (
    insert into {schema}.delivery as d (subscription, id, event_id, key, lane_hash, state, attempts, next_at,
                                        first_failed_at, last_attempt_at, error_code, error_message, past, delivered_at, delivered_by, epoch, lane)
    select $2, e.id, e.event_id, {schema}.short_key(k.key), {schema}.hash_of(k.key), c.state,
           c.attempts,
           case when c.state = 'retrying' then clock.now + c.retry_in * interval '1 microsecond' end,
           case when c.state in ('retrying', 'dead') then clock.now end,
           case when c.state <> 'waiting' then clock.now end, c.code, c.message, c.past,
           case when c.state = 'delivered' then clock.now end, case when c.state = 'delivered' then $5 end,
           case when c.state = 'running' then $4 end, $3
    from moved cross join clock
    cross join unnest($23::bigint[], $24::uuid[], $25::text[], $26::integer[], $27::bigint[], $28::text[], $29::text[],
                      $30::text[])
        as c (id, event_id, state, attempts, retry_in, code, message, past)
    join {schema}.event e on e.id = c.id and e.event_id = c.event_id
    cross join lateral (select {schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id) as key) k
    on conflict (subscription, id) do update
    set state = excluded.state, holds = excluded.holds, attempts = excluded.attempts, next_at = excluded.next_at,
        first_failed_at = coalesce(d.first_failed_at, excluded.first_failed_at),
        last_attempt_at = coalesce(excluded.last_attempt_at, d.last_attempt_at),
        error_code = coalesce(excluded.error_code, d.error_code),
        error_message = coalesce(excluded.error_message, d.error_message), past = coalesce(excluded.past, d.past),
        delivered_at = excluded.delivered_at, delivered_by = excluded.delivered_by, epoch = excluded.epoch
), succeeded as (
    delete from {schema}.delivery d
    using moved cross join unnest($31::bigint[], $32::uuid[]) as c (id, event_id)
    where d.subscription = $2 and d.id = c.id and d.event_id = c.event_id and d.state = 'running' and d.epoch = $4
)
