-- Retention and the views of states.

-- How far retention has got in the log: of what it took, the highest number and the latest time. From there on the log
-- is whole.
create table if not exists postrider_swept (
    one         tinyint not null primary key,
    id          bigint not null,
    recorded_at bigint not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- When the last mark was made that retention took out of a consumer's inbox. What was recorded after that is still known.
create table if not exists postrider_forgotten (
    consumer   varchar(200) not null primary key,
    handled_at bigint not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

drop procedure if exists postrider_archive_months;

-- Partitions the archive by the month of recording, if it is not yet, and makes the months that are missing up to the one after a
-- time (null: now). What belongs to no month goes into the last partition, `later`, and is put in its place here; what is older
-- than the first month goes there. So nothing is ever refused.
--
-- An archive that is not partitioned yet is copied: it can be read meanwhile. Every change waits for those who read the archive,
-- and makes others wait behind it, for a second at most; then it fails, and nothing has happened. It is done by the owner's rights,
-- so that relays need none to change tables.
create procedure postrider_archive_months(in at bigint)
    modifies sql data
begin
    declare patience bigint default @@session.lock_wait_timeout;
    declare how, expression, rest varchar(200);
    declare begins, upto date;
    declare clock datetime(6) default coalesce('1970-01-01 00:00:00' + interval at microsecond, utc_timestamp(6));
    declare parts longtext default '';
    declare exit handler for sqlexception
    begin
        set session lock_wait_timeout = patience;
        resignal;
    end;

    select max(p.partition_method), max(replace(p.partition_expression, '`', '')),
           max(case when p.partition_description <> 'MAXVALUE'
                    then cast(replace(p.partition_description, '''', '') as date) end),
           max(case when p.partition_description = 'MAXVALUE' then p.partition_name end)
    into how, expression, begins, rest
    from information_schema.partitions p
    where p.table_schema = database() and p.table_name = 'postrider_archive' and p.partition_name is not null;
    if how is not null and (how <> 'RANGE COLUMNS' or expression <> 'recorded_at') then
        signal sqlstate '45000' set message_text =
            'postrider: the archive is partitioned otherwise than by recorded_at; leave by_month out, or remove its partitions';
    end if;
    if begins is null then
        select least(clock, coalesce((select min(a.recorded_at) from postrider_archive a), clock),
                     coalesce((select e.recorded_at from postrider_event e order by e.id limit 1), clock))
        into begins;
        set begins = date_format(greatest(begins, clock - interval 20 year), '%Y-%m-01');
    end if;
    set upto = date_format(clock, '%Y-%m-01') + interval 2 month;
    while begins < upto do
        set parts = concat(parts, 'partition m', date_format(begins, '%Y_%m'), ' values less than (''',
                           begins + interval 1 month, '''), ');
        set begins = begins + interval 1 month;
    end while;

    if how is null or parts <> '' then
        set parts = concat('(', parts, 'partition ', coalesce(rest, 'later'), ' values less than (maxvalue))');
        set @postrider_change = concat('alter table postrider_archive ', case
            when how is null then
                'drop primary key, add primary key (id, recorded_at) partition by range columns (recorded_at) '
            when rest is null then 'add partition '
            else concat('reorganize partition ', rest, ' into ')
        end, parts);
        set session lock_wait_timeout = 1;
        prepare postrider_change from @postrider_change;
        execute postrider_change;
        deallocate prepare postrider_change;
        set session lock_wait_timeout = patience;
    end if;
end;

drop procedure if exists postrider_archive_drop;

-- Drops the first partition of the archive if all in it was recorded before a time, and says how much that was; null if it was not.
-- It waits no longer than a second, as above.
create procedure postrider_archive_drop(in at bigint)
    modifies sql data
begin
    declare patience bigint default @@session.lock_wait_timeout;
    declare gone varchar(200);
    declare exit handler for sqlexception
    begin
        set session lock_wait_timeout = patience;
        resignal;
    end;

    set gone = (
        select p.partition_name from information_schema.partitions p
        where p.table_schema = database() and p.table_name = 'postrider_archive' and p.partition_method = 'RANGE COLUMNS'
          and replace(p.partition_expression, '`', '') = 'recorded_at' and p.partition_ordinal_position = 1
          and p.partition_description <> 'MAXVALUE'
          and cast(replace(p.partition_description, '''', '') as datetime) <= '1970-01-01 00:00:00' + interval at microsecond);
    set @postrider_taken = null;
    if gone is not null then
        set @postrider_change = concat('select count(*) into @postrider_taken from postrider_archive partition (', gone, ')');
        prepare postrider_change from @postrider_change;
        execute postrider_change;
        set @postrider_change = concat('alter table postrider_archive drop partition ', gone);
        set session lock_wait_timeout = 1;
        prepare postrider_change from @postrider_change;
        execute postrider_change;
        deallocate prepare postrider_change;
        set session lock_wait_timeout = patience;
    end if;
    select cast(@postrider_taken as signed) as taken;
end;

-- What operators did. Rows are only added.
create table if not exists postrider_audit (
    id           bigint not null auto_increment primary key,
    at           bigint not null,
    who          text not null,
    what         text not null,
    why          mediumtext,
    subscription varchar(200),
    event_id     binary(16)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

drop trigger if exists postrider_audit_refuse_update;

create trigger postrider_audit_refuse_update after update on postrider_audit for each row
    signal sqlstate '45000' set message_text = 'postrider: what operators did stays written: it can''t be changed';

drop trigger if exists postrider_audit_refuse_delete;

create trigger postrider_audit_refuse_delete before delete on postrider_audit for each row
    signal sqlstate '45000' set message_text = 'postrider: what operators did stays written: it can''t be deleted';

-- Where every event stands for every subscription that wants it, without asking the time: `settled_state` is null until
-- its lane has read it, and so is `id` until it has a number; `log_id` is its place in the table.
create or replace view postrider_event_standing as
select n.seq - (n.id - e.id) as id, e.id as log_id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id,
       coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)) as ordering_key, e.sequence,
       s.name as subscription, l.lane,
       case
           when d.state in ('waiting', 'retrying') then 'retrying'
           when d.state in ('dead', 'discarded') then d.state
           when d.state = 'delivered' or n.seq - (n.id - e.id) <= l.position then 'done'
       end as settled_state,
       coalesce(d.attempts, n.seq - (n.id - e.id) <= l.position, 0) as attempts,
       coalesce(e.max_attempts, 0) as max_attempts,
       case when d.state = 'retrying' then d.next_at end as next_retry_at,
       coalesce(d.last_attempt_at, b.settled_at) as last_attempt_at,
       case when d.state is not null then d.delivered_at else b.settled_at end as delivered_at,
       case when d.state is not null then d.delivered_by else b.settled_by end as delivered_by,
       l.reading, l.lease_owner, l.lease_until, l.lease_for,
       d.error_code, d.error_message,
       e.occurred_at, e.recorded_at, e.headers, e.payload, e.content_type, e.content
from postrider_event e
left join postrider_run n on n.id = postrider_run_of(e.id)
join postrider_subscription s
    on (s.since is null or e.recorded_at >= '1970-01-01 00:00:00' + interval s.since microsecond)
   and (n.seq is null or n.seq - (n.id - e.id) > s.start_frontier)
   and (s.streams_regexp is null or e.stream regexp s.streams_regexp)
   and (s.types_regexp is null or e.event_type regexp s.types_regexp)
join postrider_lane l
    on l.subscription = s.name
   and l.lane = crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))) % s.lanes
left join postrider_delivery d on d.subscription = s.name and d.id = n.seq - (n.id - e.id)
left join postrider_settled_batch b on b.id = (
    select h.id from postrider_settled_batch h
    where h.subscription = s.name and h.last_id >= n.seq - (n.id - e.id) and h.first_id <= n.seq - (n.id - e.id)
      and n.seq - (n.id - e.id) <= l.position
      and h.lane = crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))) % h.lanes
    order by h.last_id limit 1);

-- The same with leases as they are now and with times that people read, in UTC.
create or replace view postrider_event_state as
select v.id, v.event_id, v.stream, v.event_type, v.aggregate_type, v.aggregate_id, v.ordering_key, v.sequence, v.subscription,
       v.lane,
       coalesce(v.settled_state,
                case when v.lease_owner is not null and v.id <= v.reading
                          and v.lease_until > timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))
                          and v.lease_until <= timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) + v.lease_for + 1000000
                     then 'processing' else 'pending' end) as state,
       v.attempts, v.max_attempts,
       '1970-01-01 00:00:00' + interval v.next_retry_at microsecond as next_retry_at,
       '1970-01-01 00:00:00' + interval v.last_attempt_at microsecond as last_attempt_at,
       '1970-01-01 00:00:00' + interval v.delivered_at microsecond as delivered_at, v.delivered_by,
       case when v.lease_until > timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))
                 and v.lease_until <= timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) + v.lease_for + 1000000
            then v.lease_owner end as lease_owner,
       v.error_code, v.error_message, v.occurred_at, v.recorded_at, v.headers, v.payload, v.content_type, v.content
from postrider_event_standing v;
