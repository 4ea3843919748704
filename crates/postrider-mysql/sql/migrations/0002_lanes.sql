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
