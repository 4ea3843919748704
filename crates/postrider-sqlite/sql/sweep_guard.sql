-- Lets this transaction delete events. Lock: the database's write lock. Index: the primary key.
insert into postrider_guard (work) values ('sweep')
