-- How many events a relay has handled and not settled: what its death leaves in the middle. Lock: none.
-- Index: the rows of `effect` by their number, the newest hundred only; the view finds each event by its id.
-- Parameter: the relay.
select count(distinct hand.n)
from (select n, subscription, event_id from effect where relay = ? and n > (select max(n) - 100 from effect)) hand
cross join postrider_event_state state on state.event_id = hand.event_id and state.subscription = hand.subscription
where state.state in ('pending', 'processing')
