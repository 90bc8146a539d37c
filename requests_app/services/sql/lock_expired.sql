-- lock_expired: lock a batch of requests past their expiry, longest first, and return their ids.
-- Rows another transaction holds (a pop that extends the expiry) are skipped and come back with the next batch.
-- Raw for SKIP LOCKED with an order. Served by waiting_prompts_expiry.
SELECT id
  FROM waiting_prompts
 WHERE expiry <= %(now)s
 ORDER BY expiry, id
 LIMIT %(limit)s
   FOR UPDATE SKIP LOCKED
