-- Takes back what want.sql said, for somebody got a lane; who still finds none free says it again.
-- Lock: the subscription's row. Index: the primary key. Parameters: ?1 subscription.
update postrider_subscription set wanted_until = null where name = ?1 and wanted_until is not null
