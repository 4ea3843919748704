-- Pauses a subscription, or lets it go on where nobody is named. Who paused it first stays. Lock: its row. Index: the primary key.
-- Parameters: $1 subscription, $2 who, $3 why, $4 the time, if not the database's.
update {schema}.subscription
set paused = $2::text is not null,
    paused_at = case when $2::text is null then null when paused then paused_at
                     else coalesce($4::timestamptz, clock_timestamp()) end,
    paused_by = case when $2::text is null then null when paused then paused_by else $2::text end,
    paused_why = case when $2::text is null then null when paused then paused_why else $3::text end
where name = $1::text
