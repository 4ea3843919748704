-- Subscriptions, their lanes, what was settled, what did not simply succeed, and what consumers handled.
-- Times are microseconds since 1970; the position of a lane and the id of a delivery are numbers of the log: see postrider_run.

-- streams and types are JSON arrays of patterns as they were written, and regular expressions of the same for the
-- views (null: everything); target is the common position of a change of lanes, once it is known. Somebody who holds
-- wanted_with lanes found none free, and is to be made room for until wanted_until: see want.sql.
create table if not exists postrider_subscription (
    name           varchar(200) not null primary key,
    streams        longtext not null,
    types          longtext not null,
    streams_regexp longtext,
    types_regexp   longtext,
    order_policy   varchar(10) not null,
    on_dead        varchar(10) not null,
    lanes          int not null,
    lanes_next     int,
    target         bigint,
    since          bigint,
    start_frontier bigint not null,
    paused         boolean not null default false,
    replay         boolean not null default true,
    wanted_with    bigint,
    wanted_until   bigint,
    created_at     bigint not null,
    constraint subscription_order_policy check (order_policy in ('key', 'strict', 'none')),
    constraint subscription_on_dead check (on_dead in ('skip', 'hold')),
    constraint subscription_lanes check (lanes > 0 and (lanes_next is null or lanes_next > 0))
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- One row a lane: where it stands and who holds it. A position is the number of the last event that was settled.
create table if not exists postrider_lane (
    subscription        varchar(200) not null,
    lane                int not null,
    position            bigint not null,
    reading             bigint not null default 0,
    lease_owner         varchar(500),
    lease_until         bigint,
    lease_for           bigint,
    lease_epoch         bigint not null default 0,
    claims_since_settle bigint not null default 0,
    settled_at          bigint,
    primary key (subscription, lane)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- One row a lane for handlers to lock, shared, while their transactions are open: who claims the lane has to have it
-- alone. Not the lane's own row, because its holder settles and prolongs meanwhile.
create table if not exists postrider_lane_door (
    subscription varchar(200) not null,
    lane         int not null,
    primary key (subscription, lane)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- One row a batch: the delivery history. Each lane begins with a row of nothing.
create table if not exists postrider_settled_batch (
    id           bigint not null auto_increment primary key,
    subscription varchar(200) not null,
    lane         int not null,
    lanes        int not null,
    first_id     bigint not null,
    last_id      bigint not null,
    count        bigint not null,
    settled_at   bigint not null,
    settled_by   varchar(500) not null,
    key settled_batch_range (subscription, last_id),
    key settled_batch_time (subscription, settled_at)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- One row for each event that did not simply succeed. lane_hash is crc32 of the key; `holds` is true while the row keeps
-- its key from going on (waiting, retrying, dead under hold), `open` while it is to be tried.
create table if not exists postrider_delivery (
    subscription    varchar(200) not null,
    id              bigint not null,
    event_id        binary(16) not null,
    ordering_key    varchar(701) not null,
    lane_hash       bigint not null,
    state           varchar(10) not null,
    holds           boolean not null,
    open            boolean generated always as (state in ('waiting', 'retrying')) stored,
    attempts        bigint not null,
    next_at         bigint,
    first_failed_at bigint,
    last_attempt_at bigint,
    error_code      text,
    error_message   mediumtext,
    delivered_at    bigint,
    delivered_by    varchar(500),
    requeued        bigint not null default 0,
    primary key (subscription, id),
    key delivery_key (subscription, holds, lane_hash, id),
    key delivery_open (subscription, open, id),
    key delivery_next (subscription, state, next_at),
    key delivery_state (state, id, subscription),
    key delivery_event (id),
    constraint delivery_state_known check (state in ('waiting', 'retrying', 'dead', 'delivered', 'discarded'))
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

drop trigger if exists postrider_delivery_step;

-- waiting -> retrying -> delivered | dead; dead -> retrying | discarded. No other step, whoever takes it.
create trigger postrider_delivery_step after update on postrider_delivery for each row
begin
    if not ((old.state = 'waiting' and new.state in ('waiting', 'retrying', 'delivered', 'dead'))
            or (old.state = 'retrying' and new.state in ('retrying', 'delivered', 'dead'))
            or (old.state = 'dead' and new.state in ('dead', 'retrying', 'discarded')))
    then
        signal sqlstate '45000'
            set message_text = 'postrider: a delivery is waiting, then retrying, then delivered or dead; only a dead one is requeued';
    end if;
end;

-- What one process does for all the others, who does it now, and what it noted for the next.
create table if not exists postrider_duty (
    name        varchar(200) not null primary key,
    owner       varchar(200),
    lease_until bigint not null,
    lease_for   bigint not null,
    note        longtext
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- What consumers have handled, written in their own transactions.
create table if not exists postrider_inbox (
    consumer   varchar(200) not null,
    event_id   binary(16) not null,
    handled_at bigint not null,
    primary key (consumer, event_id),
    key inbox_handled (handled_at)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

drop procedure if exists postrider_stand;

-- How a holder stands with its lane, after a settle or an extension: whether the lane is wanted back, and whether anything of
-- the subscription is open. Lock: none of its own. Index: the primary keys, delivery_open, delivery_key.
-- A holder gives this lane up to somebody who found none free (see want.sql) if it has at least two more than they have, this
-- is the last of them, and none is free yet: one lane at a time. A wish from the future is void: the clock went back. Who
-- else holds lanes is looked at only if one is wanted. A subscription that is gone wants its lanes back.
create procedure postrider_stand(
    in the_subscription varchar(200) charset utf8mb4 collate utf8mb4_bin, in the_lane int,
    in the_owner varchar(500) charset utf8mb4 collate utf8mb4_bin, in stands_at bigint, in now_at bigint,
    out is_recalled boolean, out is_open boolean)
    reads sql data
begin
    set is_recalled = true, is_open = false;
    select s.paused or (s.lanes_next is not null and (s.target is null or s.target = stands_at))
               or case when s.wanted_until > now_at and s.wanted_until <= now_at + 11000000 then (
                   select coalesce(max(h.owner = the_owner and h.last_lane = the_lane and h.lanes > s.wanted_with + 1), 0)
                          and sum(h.lanes) = s.lanes
                   from (select l.lease_owner as owner, count(*) as lanes, max(l.lane) as last_lane
                         from postrider_lane l
                         where l.subscription = the_subscription and l.lease_owner is not null and l.lease_until > now_at
                           and l.lease_until <= now_at + l.lease_for + 1000000
                         group by l.lease_owner) h) else 0 end,
           exists (select 1 from postrider_delivery d force index (delivery_open)
                   where d.subscription = the_subscription and d.open = true)
           or exists (select 1 from postrider_delivery d force index (delivery_key)
                      where d.subscription = the_subscription and d.holds = true)
    into is_recalled, is_open
    from postrider_subscription s where s.name = the_subscription;
end;

drop procedure if exists postrider_settle;

-- Moves a lane, under its lease and from where it must stand, and writes what became of the events that did not simply succeed:
-- all of it or nothing, in one call, so that no client can stand still with the lane's lock. Lock: the lane's row, then those of
-- the deliveries; it is changed in place, so it stays flat while somebody holds a transaction open. Index: the primary keys.
-- Which steps of a delivery are possible is the trigger's to say. `changes` is a JSON array, or null; `given_now` is null for the
-- database's own clock.
create procedure postrider_settle(
    in the_subscription varchar(200) charset utf8mb4 collate utf8mb4_bin, in the_lane int, in the_epoch bigint,
    in the_owner varchar(500) charset utf8mb4 collate utf8mb4_bin, in from_seq bigint, in to_seq bigint, in reading_seq bigint,
    in the_count bigint, in given_now bigint, in changes longtext charset utf8mb4 collate utf8mb4_bin)
    modifies sql data
begin
    declare now_at bigint default coalesce(given_now, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)));
    declare is_held, is_recalled, is_open boolean default false;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;
    set transaction isolation level read committed;
    start transaction;
    select true into is_held from postrider_lane
    where subscription = the_subscription and lane = the_lane and lease_epoch = the_epoch and lease_owner = the_owner
      and position = from_seq
    for update;
    if is_held then
        update postrider_lane
        set position = to_seq, reading = greatest(to_seq, reading_seq), claims_since_settle = 1, settled_at = now_at
        where subscription = the_subscription and lane = the_lane;
        if from_seq <> to_seq then
            insert into postrider_settled_batch (subscription, lane, lanes, first_id, last_id, count, settled_at, settled_by)
            select the_subscription, the_lane, s.lanes, from_seq + 1, to_seq, the_count, now_at, the_owner
            from postrider_subscription s where s.name = the_subscription;
        end if;
        if changes is not null then
            insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts, next_at,
                                            first_failed_at, last_attempt_at, error_code, error_message, delivered_at, delivered_by)
            select the_subscription, c.id, e.event_id, coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)),
                   crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))), c.state,
                   s.order_policy <> 'none' and (c.state in ('waiting', 'retrying') or (c.state = 'dead' and s.on_dead = 'hold')),
                   c.attempts,
                   case when c.state = 'retrying' then now_at + c.retry_in end,
                   case when c.state in ('retrying', 'dead') then now_at end,
                   case when c.state <> 'waiting' then now_at end,
                   c.code, c.message,
                   case when c.state = 'delivered' then now_at end,
                   case when c.state = 'delivered' then the_owner end
            from json_table(changes, '$[*]' columns (
                     id bigint path '$.id', state varchar(10) path '$.state', attempts bigint path '$.attempts',
                     retry_in bigint path '$.retry_in', code text path '$.code', message mediumtext path '$.message')) c
            straight_join postrider_run r on r.seq = postrider_run_at(c.id)
            straight_join postrider_event e on e.id = r.id - (r.seq - c.id)
            straight_join postrider_subscription s on s.name = the_subscription
            on duplicate key update
                state = values(state), holds = values(holds), attempts = values(attempts), next_at = values(next_at),
                first_failed_at = coalesce(postrider_delivery.first_failed_at, values(first_failed_at)),
                last_attempt_at = coalesce(values(last_attempt_at), postrider_delivery.last_attempt_at),
                error_code = coalesce(values(error_code), postrider_delivery.error_code),
                error_message = coalesce(values(error_message), postrider_delivery.error_message),
                delivered_at = values(delivered_at), delivered_by = values(delivered_by);
        end if;
        call postrider_stand(the_subscription, the_lane, the_owner, to_seq, now_at, is_recalled, is_open);
    end if;
    commit;
    select is_held as held, is_recalled as recalled, is_open as open;
end;

drop procedure if exists postrider_extend;

-- Prolongs a lease, by a time in microseconds, where the lane stands as its holder says. Lock: the lane's row. Index: the primary
-- key.
create procedure postrider_extend(
    in the_subscription varchar(200) charset utf8mb4 collate utf8mb4_bin, in the_lane int, in the_epoch bigint,
    in the_owner varchar(500) charset utf8mb4 collate utf8mb4_bin, in stands_at bigint, in reading_seq bigint, in prolong_by bigint,
    in given_now bigint)
    modifies sql data
begin
    declare now_at bigint default coalesce(given_now, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)));
    declare is_held, is_recalled, is_open boolean default false;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;
    set transaction isolation level read committed;
    start transaction;
    select true into is_held from postrider_lane
    where subscription = the_subscription and lane = the_lane and lease_epoch = the_epoch and lease_owner = the_owner
      and position = stands_at
    for update;
    if is_held then
        if given_now is null then
            -- The lock may have been waited for.
            set now_at = timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6));
        end if;
        update postrider_lane
        set lease_until = now_at + prolong_by, lease_for = prolong_by, reading = greatest(reading, reading_seq)
        where subscription = the_subscription and lane = the_lane;
    end if;
    commit;
    if is_held then
        call postrider_stand(the_subscription, the_lane, the_owner, stands_at, now_at, is_recalled, is_open);
    end if;
    select is_held as held, is_recalled as recalled, is_open as open, now_at + prolong_by as until;
end;
