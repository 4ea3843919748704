-- What the holder of a lane says of its destination. Publishers never touch this table; relays wait for a moment, and those of before go on
-- with postrider_extend, without a word of it.

-- Why the destination is away, and since when; null while it is not. It is the holder's word: it counts as long as the lease does.
set @postrider_change = (
    select if(count(*) = 0, 'alter table postrider_lane add column away varchar(300), add column away_since bigint', 'do 0')
    from information_schema.columns
    where table_schema = database() and table_name = 'postrider_lane' and column_name = 'away_since');

prepare postrider_change from @postrider_change;

execute postrider_change;

deallocate prepare postrider_change;

-- As postrider_extend, with what the holder says of its destination.
create or replace procedure postrider_extend_away(
    in the_subscription varbinary(800), in the_lane int, in the_epoch bigint,
    in the_owner varbinary(2000), in stands_at bigint, in reading_seq bigint, in prolong_by bigint,
    in given_now bigint, in the_reason varchar(300) charset utf8mb4 collate utf8mb4_bin)
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
        set lease_until = now_at + prolong_by, lease_for = prolong_by, reading = greatest(reading, reading_seq),
            away = the_reason, away_since = case when the_reason is not null then coalesce(away_since, now_at) end
        where subscription = the_subscription and lane = the_lane;
    end if;
    commit;
    if is_held then
        call postrider_stand(the_subscription, the_lane, the_owner, stands_at, now_at, is_recalled, is_open);
    end if;
    select is_held as held, is_recalled as recalled, is_open as open, now_at + prolong_by as until;
end;
