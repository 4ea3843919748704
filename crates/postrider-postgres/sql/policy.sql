-- Brings the open deliveries in line with the subscription's order and on_dead. Lock: the rows that change; usually none.
-- Parameters: $1 subscription.
update {schema}.delivery d
set holds = not d.holds
from {schema}.subscription s
where s.name = $1 and d.subscription = s.name and d.state in ('waiting', 'running', 'retrying', 'dead')
  and d.holds <> (s.order_policy <> 'none' and (d.state <> 'dead' or s.on_dead = 'hold'))
