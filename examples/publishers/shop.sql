create table orders (id integer primary key, payments integer not null default 0);
insert into orders (id) select generate_series(1, 7);
