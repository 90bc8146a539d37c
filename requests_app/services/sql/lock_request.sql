-- lock_request: lock one request, in a statement of its own: what follows sees what was committed until then.
-- Served by the primary key.
SELECT id
  FROM waiting_prompts
 WHERE id = %(request_id)s
   FOR NO KEY UPDATE
