-- Removes a subscription with all that is its own; the inbox is not. Lock: its lanes (their handlers are waited for) and its
-- row. Index: the primary keys, settled_batch_range. The lanes go first: a settle that is under way is waited for, and what it
-- wrote is deleted, too; so these are statements of their own, each with its own snapshot.
-- Parameters: $1 subscription.
delete from {schema}.{table} where {column} = $1
