-- Lets open deliveries hold their keys, or not, as new policies say. Lock: those rows.
-- In the order of their numbers, so that the trigger sees of each whether one is in front of it. Index: the primary key. Parameters: ?1 subscription, ?2 order policy, ?3 on dead.
update postrider_delivery
set holds = ?2 <> 'none' and (state in ('waiting', 'running', 'retrying') or (state = 'dead' and ?3 = 'hold'))
where subscription = ?1 and state in ('waiting', 'running', 'retrying', 'dead')
order by id
