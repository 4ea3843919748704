-- Forgets deliveries that were running under this very lease and simply succeeded. Lock: the database's write lock.
-- Index: the primary key. An event id of another length than 16 bytes is known by its number alone: see row.rs.
-- Parameters: ?1 subscription, ?2 the lease's epoch, ?3 a JSON array of ids and event ids.
delete from postrider_delivery
where subscription = ?1 and state = 'running' and epoch = ?2
  and id in (select c.value ->> 'id' from json_each(?3) c)
  and exists (select 1 from json_each(?3) c
              where c.value ->> 'id' = postrider_delivery.id
                and (unhex(c.value ->> 'event_id') = postrider_delivery.event_id or length(postrider_delivery.event_id) <> 16))
