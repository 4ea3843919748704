-- Lets open deliveries hold their keys, or not, as new policies say. Lock: the database's write lock.
-- Index: the primary key. Parameters: ?1 subscription, ?2 order policy, ?3 on dead.
update postrider_delivery
set holds = ?2 <> 'none' and (state in ('waiting', 'running', 'retrying') or (state = 'dead' and ?3 = 'hold'))
where subscription = ?1 and state in ('waiting', 'running', 'retrying', 'dead')
