-- A relay as it said of itself, a row a start: two relays of one name are two rows. Written when something changes and every 20
-- seconds otherwise, deleted when the relay ends; one that ended without a word is forgotten a day later.
create table postrider_relay (
    id         blob primary key,
    name       text not null,
    host       text not null,
    process    integer not null,
    version    text not null,
    started_at integer not null,
    seen_at    integer not null,
    runs       text not null
) strict, without rowid;

-- Who paused a subscription, when and why.
alter table postrider_subscription add column paused_at integer;
alter table postrider_subscription add column paused_by text;
alter table postrider_subscription add column paused_why text;
