-- discard_request: delete a request that was never activated, and return what is held for it. No row comes back when it
-- is gone or active. Served by the primary key.
DELETE FROM waiting_prompts
 WHERE id = %(id)s
   AND NOT active
RETURNING upfront_kudos
