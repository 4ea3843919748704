-- Relays make themselves known, and who paused a subscription is kept. Publishers touch neither table.

-- A relay as it said of itself, a row a start: two relays of one name are two rows. Written when something changes and every 20
-- seconds otherwise, deleted when the relay ends; one that ended without a word is forgotten a day later.
create table if not exists postrider_relay (
    id         binary(16) not null primary key,
    name       varbinary(800) not null,
    host       varbinary(800) not null,
    process    bigint not null,
    version    varbinary(800) not null,
    started_at bigint not null,
    seen_at    bigint not null,
    runs       longtext not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

set @postrider_change = (
    select if(count(*) = 0, 'alter table postrider_subscription add column paused_at bigint, add column paused_by varbinary(800), add column paused_why text',
              'do 0')
    from information_schema.columns
    where table_schema = database() and table_name = 'postrider_subscription' and column_name = 'paused_why');

prepare postrider_change from @postrider_change;

execute postrider_change;

deallocate prepare postrider_change;
