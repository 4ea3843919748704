-- Keeps all subscriptions from being set back while retention chooses and takes. Lock: their rows, shared: claims go on.
-- Index: the primary key.
select name from postrider_subscription order by name lock in share mode
