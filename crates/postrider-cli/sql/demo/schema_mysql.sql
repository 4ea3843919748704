-- The shop's own tables, beside the outbox's: see schema_sqlite.sql. Lock: none that matters, before anybody else is there.
create table customer (id varchar(100) primary key, changes bigint not null) engine = InnoDB;
create table changed (event_id binary(16) primary key, customer varchar(100) not null, number bigint not null) engine = InnoDB;
create table rolled_back (event_id binary(16) primary key) engine = InnoDB;
create table effect (
    n            bigint auto_increment primary key,
    subscription varchar(100) not null,
    event_id     binary(16) not null,
    customer     varchar(100) not null,
    number       bigint not null,
    relay        varchar(100) not null,
    key effect_event (subscription, event_id)
) engine = InnoDB;
create table failed_call (n bigint auto_increment primary key, subscription varchar(100) not null, event_id binary(16) not null)
    engine = InnoDB;
insert into customer
with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n < 15)
select concat('customer-', n), 0 from numbers;
