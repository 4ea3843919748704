-- Whether the transaction of a handler is still the one that began: asked just before its commit. One that a statement has aborted
-- fails this one, too; after a rollback or a commit the id is another, or there is none. Lock: none. Index: none.
-- Parameters: $1 the id that it began with.
select pg_current_xact_id_if_assigned() is not distinct from $1::text::xid8
