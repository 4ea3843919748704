-- Takes back what want.sql said, for somebody got a lane; who still finds none free says it again. Lock: the subscription's row.
-- Index: subscription_pkey. Parameters: $1 subscription, $2 until when it was said.
update {schema}.subscription set wanted_until = null where name = $1 and wanted_until = $2
