-- One limit of payloads for all publishers, whatever they record with. Publishers and relays go on.

-- The largest payload in bytes. A function with a constant in it is the setting: a table would be read with a lock by the trigger, which
-- fails where a transaction has an older snapshot (error 1020). `migrate` puts the number in: that of the log, or, where there is none yet,
-- 1 MiB for a new log and 1 GiB for one that has events, so that a migration refuses nothing of what publishers record.
create or replace function postrider_max_payload() returns bigint
    deterministic no sql
    return {max_payload};

-- As before, and refuses a payload that is too large, in the sentence of the libraries. MySQL takes no more than 128 characters of it,
-- so it goes without the name in front.
create or replace trigger postrider_event_record before insert on postrider_event for each row
begin
    declare chance char(32);
    declare refusal varchar(128);
    declare size bigint default greatest(coalesce(octet_length(new.payload), 0), coalesce(octet_length(new.content), 0));
    if size > postrider_max_payload() then
        set refusal = left(concat('the payload has ', size, ' bytes, more than the limit of ', postrider_max_payload(),
                                  '; raise the limit or store it elsewhere and record a reference'), 128);
        signal sqlstate '45000' set message_text = refusal;
    end if;
    if new.occurred_at is not null
       and not coalesce(year(new.occurred_at) > 0
                        and dayofmonth(new.occurred_at) between 1 and dayofmonth(last_day(new.occurred_at)), false)
    then
        signal sqlstate '45000'
            set message_text = 'postrider: occurred_at must be a day of the calendar, in UTC; leave it out for the time of recording';
    end if;
    if new.sequence is not null then
        insert into postrider_counter (ordering_key, value)
        values (coalesce(new.ordering_key, concat(new.aggregate_type, ':', new.aggregate_id)), 1)
        on duplicate key update value = value + 1;
        set new.sequence = (
            select value from postrider_counter
            where ordering_key = cast(coalesce(new.ordering_key, concat(new.aggregate_type, ':', new.aggregate_id)) as binary));
    end if;
    insert into postrider_arrival () values ();
    set new.id = last_insert_id();
    set new.recorded_at = utc_timestamp(6);
    if new.event_id is null then
        set chance = left(sha2(concat(uuid(), rand()), 256), 32);
        set new.event_id = unhex(concat(
            lpad(hex(timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) div 1000), 12, '0'),
            '7', substr(chance, 1, 3), substr('89ab', 1 + floor(rand() * 4), 1), substr(chance, 4, 15)));
    end if;
    if new.max_attempts = 0 then
        set new.max_attempts = null;
    end if;
    if new.stream is null then
        set new.stream = 'events';
    end if;
    if new.occurred_at is null then
        set new.occurred_at = new.recorded_at;
    end if;
    if new.headers is null then
        set new.headers = '{}';
    end if;
end;
