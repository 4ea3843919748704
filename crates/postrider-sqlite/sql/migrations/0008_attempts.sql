-- The last tries of a delivery that failed, as a JSON array, the oldest first; null for one that never failed. At most ten, and 32 KiB.
alter table postrider_delivery add column past text;
