-- What is due is found by an index, whatever else is open. Publishers never touch this table; relays wait while its open rows are
-- placed. Rows are placed by triggers, so that those that a relay of before writes are found, too.

-- `lane` is the one that the row's key is in; a change of lanes places rows anew. `look_at` is when a look is to find the row: of each
-- key its first open row alone has one, what waits behind it is found with it. Without order each row has one. A dead row has none.
alter table {schema}.delivery add column lane integer, add column look_at timestamptz;

-- When a row's own time comes.
create function {schema}.look_at(state text, next_at timestamptz) returns timestamptz language sql immutable parallel safe as $$
    select case when state = 'retrying' then next_at when state in ('waiting', 'running') then '-infinity'::timestamptz end
$$;

update {schema}.delivery d
set lane = d.lane_hash % s.lanes,
    look_at = case when not d.holds
                        or d.id = (select f.id from {schema}.delivery f
                                   where f.subscription = d.subscription and f.key = d.key and f.holds
                                   order by f.key, f.id limit 1)
                   then {schema}.look_at(d.state, d.next_at) end
from {schema}.subscription s
where s.name = d.subscription and (d.holds or d.state in ('waiting', 'running', 'retrying', 'dead'));

create index delivery_look on {schema}.delivery (subscription, lane, look_at, id) where look_at is not null;
create index delivery_lane on {schema}.delivery (subscription, lane, id) where holds;
drop index {schema}.delivery_due;

-- Places a row, and says whether it holds its key. A row that has one of its key before it is found with that one. Who writes rows of a
-- lane at the same time as its settle would count on rows that the other lets go: so everybody locks the lane's row first and then looks,
-- each statement with a snapshot of its own. A settle has that lock; an operator's hand and a new policy take it here. The policy is
-- looked up here, too: a settle that had to wait for a new one has a snapshot of before. (Its plan is made when the table may still be
-- empty, and kept: whatever the session, it must not be a scan of the table.)
create function {schema}.delivery_place() returns trigger language plpgsql set enable_seqscan = off as $$
declare
    policy record;
begin
    if tg_op = 'UPDATE' then
        if old.state = 'dead' or (old.state = new.state and old.holds <> new.holds) then
            perform from {schema}.lane l where l.subscription = new.subscription and l.lane = new.lane for no key update;
        end if;
    end if;
    new.holds := false;
    if new.state in ('waiting', 'running', 'retrying', 'dead') or new.lane is null then
        select s.lanes, s.order_policy, s.on_dead into policy from {schema}.subscription s where s.name = new.subscription;
        new.lane := coalesce(new.lane, new.lane_hash % policy.lanes);
        new.holds := policy.order_policy <> 'none'
            and (new.state in ('waiting', 'running', 'retrying') or (new.state = 'dead' and policy.on_dead = 'hold'));
    end if;
    new.look_at := {schema}.look_at(new.state, new.next_at);
    if new.holds and new.look_at is not null
       and (select f.id from {schema}.delivery f
            where f.subscription = new.subscription and f.key = new.key and f.holds
            order by f.key, f.id limit 1) < new.id then
        new.look_at := null;
    end if;
    return new;
end
$$;

create trigger delivery_place before insert on {schema}.delivery for each row execute function {schema}.delivery_place();

create trigger delivery_place_again before update on {schema}.delivery for each row
    when (old.state <> new.state or old.holds <> new.holds or old.next_at is distinct from new.next_at)
    execute function {schema}.delivery_place();

-- A row that does not hold its key any more lets the next one be found. Only the first of its key does so (it has a time, or is dead):
-- behind each of many that a statement takes from one key, the next one would be looked for through all of them.
create function {schema}.delivery_let_go() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    update {schema}.delivery d set look_at = {schema}.look_at(d.state, d.next_at)
    where d.subscription = old.subscription
      and d.id = (select f.id from {schema}.delivery f
                  where f.subscription = old.subscription and f.key = old.key and f.holds
                  order by f.key, f.id limit 1)
      and d.look_at is null and d.state <> 'dead';
    return null;
end
$$;

create trigger delivery_let_go after update on {schema}.delivery for each row
    when (old.holds and not new.holds and (old.look_at is not null or old.state = 'dead'))
    execute function {schema}.delivery_let_go();

create trigger delivery_gone after delete on {schema}.delivery for each row
    when (old.holds and (old.look_at is not null or old.state = 'dead')) execute function {schema}.delivery_let_go();

-- A row that begins to hold its key in front of another takes its place: a late one, or one that is requeued.
create function {schema}.delivery_step_in() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    update {schema}.delivery d set look_at = null
    where d.subscription = new.subscription
      and d.id = (select f.id from {schema}.delivery f
                  where f.subscription = new.subscription and f.key = new.key and f.id > new.id and f.holds
                  order by f.key, f.id limit 1)
      and d.look_at is not null;
    return null;
end
$$;

create trigger delivery_step_in after insert on {schema}.delivery for each row
    when (new.holds and (new.look_at is not null or new.state = 'dead')) execute function {schema}.delivery_step_in();

create trigger delivery_step_in_again after update on {schema}.delivery for each row
    when (new.holds and not old.holds) execute function {schema}.delivery_step_in();
