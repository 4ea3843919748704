-- The shop's own tables, beside the outbox's. Lock: the write lock, once, before anybody else is there.
-- `changed` has a row a change that was committed, written in the transaction that recorded its event; `rolled_back` one a
-- transaction that was not, written after it. `effect` is what handlers did, in the order in which they did it, and
-- `failed_call` what they refused to do. The summary counts these, and asks nobody what should be in them.
create table customer (id text primary key, changes integer not null) strict;
create table changed (event_id blob primary key, customer text not null, number integer not null) strict;
create table rolled_back (event_id blob primary key) strict;
create table effect (
    n            integer primary key autoincrement,
    subscription text not null,
    event_id     blob not null,
    customer     text not null,
    number       integer not null,
    relay        text not null
) strict;
create index effect_event on effect (subscription, event_id);
create table failed_call (n integer primary key, subscription text not null, event_id blob not null) strict;
with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n < 15)
insert into customer select 'customer-' || n, 0 from numbers;
