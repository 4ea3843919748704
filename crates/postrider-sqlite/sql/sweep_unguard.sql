-- Lets nobody delete events any more. Lock: the database's write lock. Index: the primary key.
delete from postrider_guard where work = 'sweep'
