-- What is due is found by an index, whatever else is open. Rows are placed by triggers, whoever writes them.

-- `lane` is the one that the row's key is in; a change of lanes places rows anew. `look_at` is when a look is to find the row: of each
-- key its first open row alone has one, what waits behind it is found with it. Without order each row has one. A dead row has none.
alter table postrider_delivery add column lane integer;
alter table postrider_delivery add column look_at integer;

update postrider_delivery
set lane = lane_hash % (select s.lanes from postrider_subscription s where s.name = postrider_delivery.subscription),
    look_at = case when holds and id > (select f.id from postrider_delivery f indexed by postrider_delivery_key
                                        where f.subscription = postrider_delivery.subscription and f.key = postrider_delivery.key and f.holds
                                        order by f.id limit 1)
                   then null
                   when state = 'retrying' then next_at when state in ('waiting', 'running') then 0 end
where holds or state in ('waiting', 'running', 'retrying', 'dead');

create index postrider_delivery_look on postrider_delivery (subscription, lane, look_at, id) where look_at is not null;
create index postrider_delivery_lane on postrider_delivery (subscription, lane, id) where holds;
drop index postrider_delivery_next;
drop index postrider_delivery_blocking;

-- A new row is found with the first one of its key, if there is one before it; in front of others it takes their place.
create trigger postrider_delivery_place after insert on postrider_delivery
begin
    update postrider_delivery
    set lane = coalesce(lane, lane_hash % (select s.lanes from postrider_subscription s where s.name = new.subscription)),
        look_at = case when holds and id > (select f.id from postrider_delivery f indexed by postrider_delivery_key
                                            where f.subscription = new.subscription and f.key = new.key and f.holds
                                            order by f.id limit 1)
                       then null
                       when state = 'retrying' then next_at when state in ('waiting', 'running') then 0 end
    where subscription = new.subscription and id = new.id;
    update postrider_delivery set look_at = null
    where new.holds and subscription = new.subscription and look_at is not null
      and id = (select f.id from postrider_delivery f indexed by postrider_delivery_key
                where f.subscription = new.subscription and f.key = new.key and f.holds and f.id > new.id
                order by f.id limit 1);
end;

-- A row that is changed is placed anew. One that does not hold its key any more lets the next one be found; one that begins to, in front
-- of another, takes its place.
create trigger postrider_delivery_place_again after update of state, holds, next_at on postrider_delivery
when old.state <> new.state or old.holds <> new.holds or old.next_at is not new.next_at
begin
    update postrider_delivery
    set look_at = case when holds and id > (select f.id from postrider_delivery f indexed by postrider_delivery_key
                                            where f.subscription = new.subscription and f.key = new.key and f.holds
                                            order by f.id limit 1)
                       then null
                       when state = 'retrying' then next_at when state in ('waiting', 'running') then 0 end
    where subscription = new.subscription and id = new.id;
    update postrider_delivery
    set look_at = case when state = 'retrying' then next_at when state in ('waiting', 'running') then 0 end
    where old.holds and not new.holds and subscription = new.subscription and look_at is null
      and id = (select f.id from postrider_delivery f indexed by postrider_delivery_key
                where f.subscription = new.subscription and f.key = new.key and f.holds
                order by f.id limit 1);
    update postrider_delivery set look_at = null
    where new.holds and not old.holds and subscription = new.subscription and look_at is not null
      and id = (select f.id from postrider_delivery f indexed by postrider_delivery_key
                where f.subscription = new.subscription and f.key = new.key and f.holds and f.id > new.id
                order by f.id limit 1);
end;

-- What is gone lets the next one be found.
create trigger postrider_delivery_gone after delete on postrider_delivery when old.holds
begin
    update postrider_delivery
    set look_at = case when state = 'retrying' then next_at when state in ('waiting', 'running') then 0 end
    where subscription = old.subscription and look_at is null
      and id = (select f.id from postrider_delivery f indexed by postrider_delivery_key
                where f.subscription = old.subscription and f.key = old.key and f.holds
                order by f.id limit 1);
end;
