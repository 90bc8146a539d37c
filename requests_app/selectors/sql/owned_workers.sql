-- owned_workers: a user's workers, oldest first, at most %(limit)s. Served by the index on workers.user_id.
SELECT id
  FROM workers
 WHERE user_id = %(user_id)s
 ORDER BY created, id
 LIMIT %(limit)s
