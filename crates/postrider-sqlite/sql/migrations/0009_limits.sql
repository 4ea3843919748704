-- One limit of payloads for all publishers, whatever they record with.
create table postrider_setting (
    name  text primary key,
    value integer not null
) strict, without rowid;

-- A log that has events goes on taking what it took until somebody sets a limit.
insert into postrider_setting
select 'max_payload', case when exists (select 1 from postrider_event) or exists (select 1 from postrider_archive)
                           then 1073741824 else 1048576 end;

-- The sentence is that of the library, but for the numbers: older SQLites raise nothing but literals, and publishers may have one.
create trigger postrider_event_limit before insert on postrider_event
when max(coalesce(length(cast(new.payload as blob)), 0), coalesce(length(new.content), 0))
    > (select value from postrider_setting where name = 'max_payload')
begin
    select raise(abort, 'postrider: the payload has more bytes than the limit of the log; raise the limit or store it elsewhere and record a reference');
end;
